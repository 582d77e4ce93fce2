import Contract
import ControlPlane
import Daemon
import RTP
import SFU
import Sockets
import WorkerInterface

// The worker threads and the control thread.
extension World {
    /// Capacity of a worker's socket in datagrams; the kernel drops any beyond it.
    private static let socketDatagrams = 2_000

    func round(_ index: Int) {
        let worker = workers[index]
        tally.rounds += 1
        worker.omissions = []
        if strikes(.forgottenWithdrawal) { worker.omissions.insert(.withdrawal) }
        if strikes(.forgottenFlush, oneIn: 20) { worker.omissions.insert(.flush) }
        if strikes(.forgottenRing) { worker.omissions.insert(.publishing) }
        if strikes(.oldMemory, oneIn: 20) { worker.keepState() }
        worker.round(at: now, through: self)
        for other in worker.rung.sorted() { wake(other) }
        worker.rung = []
        if !worker.events.isEmpty { wakeControl() }
        var next = worker.round.deadline
        if !worker.queue.isEmpty {
            next = min(next, max(worker.refusesUntil, now.advanced(milliseconds: 1)))
        }
        wake(index, at: max(next, now.advanced(nanoseconds: 50_000)))
    }

    /// Delivers a datagram to a worker's socket.
    func arrive(_ bytes: [UInt8], from path: Path, at index: Int) {
        let worker = workers[index]
        guard worker.arrived.count < Self.socketDatagrams else { return }
        trace.note(now.nanoseconds)
        trace.note(bytes.first ?? 0)
        tally.datagrams += 1
        consent.noteIn(bytes, from: path, at: now, isHandshake: isHandshake(bytes, from: path))
        if strikes(.uncountedDrop, oneIn: 2_000) { return worker.taken += 1 }
        worker.arrived.append(.init(path: path, bytes: bytes, at: now))
        wake(index)
    }

    /// Whether a datagram belongs to a pending handshake at that address.
    private func isHandshake(_ bytes: [UInt8], from path: Path) -> Bool {
        guard case .dtls = Datagram(bytes.span), let index = clientsByPath[path],
            let client = clients[index]
        else { return false }
        return client.path == path && !client.isConnected
    }

    /// Runs the control thread once.
    func control() {
        for worker in workers {
            let events = worker.events
            worker.events = []
            for event in events { take(event, from: worker.index) }
        }
        takeOutput()
        let calls = lines
        lines = []
        for (connection, line) in calls where callers.isOpen(connection) {
            let unixTime = unixOffset + Double(now.nanoseconds) / 1e9
            plane.receive(line, from: connection, at: now, unixTime: unixTime)
        }
        takeOutput()
        plane.expire(at: now)
        takeOutput()
        if let next = plane.deadline {
            after(milliseconds: max(1, next.milliseconds(since: now) + 1)) { [unowned self] in
                wakeControl()
            }
        }
    }

    private func take(_ event: WorkerEvent, from worker: Int) {
        if case .statistics(let token, let statistics) = event, token > 1 << 62 {
            return check(statistics, token, of: worker)
        }
        if case .fenced(let epoch, _, _) = event {
            if fencesTaken.remove(Fence(worker: worker, epoch: epoch)) != nil { return }
            trace.note(epoch)
            plane.receive(event, from: worker, at: now)
            if strikes(.halfFence) { passRest(of: epoch, at: worker) }
            return
        }
        plane.receive(event, from: worker, at: now)
    }

    /// A fence in transit.
    struct Fence: Hashable {
        var worker: Int
        var epoch: UInt64
    }

    /// Passes a fence for all other workers when one has passed it (a planted bug).
    private func passRest(of epoch: UInt64, at worker: Int) {
        for other in plane.workersAwaited(atFence: epoch) where other != worker {
            fencesTaken.insert(Fence(worker: other, epoch: epoch))
            plane.receive(.fenced(epoch: epoch, at: now, packets: 0), from: other, at: now)
        }
    }

    func takeOutput() {
        var output = plane.takeOutput()
        while !output.isEmpty {
            for one in output { take(one) }
            output = plane.takeOutput()
        }
    }

    private func take(_ output: ControlOutput) {
        switch output {
        case .reply(let connection, let line): emit(reply: line, on: connection)
        case .commands(let worker, let commands): post(commands, to: worker)
        case .event(let event, let room, let seq):
            trace.note(seq)
            emit(event: event.line, of: room)
        case .subscribe(let connection, let events, let replay):
            callers.subscribe(connection, rooms: events.rooms)
            for missed in replay { deliver(event: missed.event.line, on: connection) }
        case .save(let changes):
            for change in changes where !strikes(.lostRecord, oneIn: 20) {
                saved[change.key] = change.value
            }
        case .serverEvent, .statistics, .log, .close, .exit, .upgrade, .place, .handOver: break
        }
    }

    private func post(_ commands: [WorkerCommand], to worker: Int) {
        let passed = altered(commands, for: worker)
        workers[worker].mailbox += passed
        wake(worker)
        guard strikes(.skippedFence) else { return }
        for case .fence(let epoch) in commands {
            fencesTaken.insert(Fence(worker: worker, epoch: epoch))
            let event = WorkerEvent.fenced(epoch: epoch, at: now, packets: 0)
            schedule.add(.fence(worker: worker, event), at: now.advanced(nanoseconds: 1_000))
        }
    }

    /// Returns the commands as a planted bug alters them.
    private func altered(_ commands: [WorkerCommand], for worker: Int) -> [WorkerCommand] {
        guard plant != nil else { return commands }
        var passed: [WorkerCommand] = []
        for command in commands {
            switch command {
            case .gate(_, open: false) where strikes(.missingGate): break
            case .gate(let id, open: false)
            where plant == .missingGateElsewhere && mirrors[worker].contains(id):
                break
            case .mirror(let mirror):
                mirrors[worker].insert(mirror.configuration.id)
                passed.append(command)
            case .gate(_, open: false) where strikes(.effectAfterFence):
                schedule.add(
                    .commands(worker: worker, [command]),
                    at: now.advanced(milliseconds: 30)
                )
            case .bind(_, let binding) where binding?.open != true && strikes(.forgottenUnbind):
                break
            case .bind(_, let binding)
            where binding?.open == true && strikes(.forgottenBind, oneIn: 8):
                break
            case .close where strikes(.placeKept, oneIn: 8): break
            case .resume where strikes(.forgottenResume, oneIn: 8): break
            case .configure(_, let configuration) where plant == .openedAtReconfigure:
                passed.append(command)
                passed += configuration.publications.map { .gate($0.id, open: true) }
            default: passed.append(command)
            }
        }
        return passed
    }
}
