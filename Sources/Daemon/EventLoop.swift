import CKernel
import ControlPlane
import Foundation
import Kernel
import Nodes
import RTP
import Recording
import Rooms
import Sockets
import WorkerInterface

/// Event loop of the control thread: IPC, the control plane, signals, and HTTP.
struct EventLoop: ~Copyable {
    let log: Log
    private let signals: Int32
    let workers: [Worker]
    private let disk: DiskWriter
    private let http: HTTPServer?
    let setup: ControlSetup
    /// Memory that the next life goes on from.
    let calls: CallMemory
    var poller: Poller
    var ipc: IPCServer
    /// Absent without `--nats`.
    var cluster: ClusterService?
    var control: ControlPlane
    private var sampler: StatisticsSampler
    private var trimmer = HeapTrimmer()
    private var watchdog: Watchdog
    let handover: Handover
    let replacement: ProcessReplacement
    var upgrade: PendingUpgrade?
    private var memory = ResidentMemory()
    /// Latest time to exit after a first signal.
    private var exitDeadline: Instant?
    /// Whether all rooms have ended, so that only output is left to be written.
    private var hasEnded = false

    /// Reason for which the loop ended.
    enum Outcome: Equatable {
        /// Orderly shutdown after a first signal.
        case stopped
        /// Immediate exit after a second signal.
        case forced
        /// A worker's thread has ended; the daemon does not run without one of its workers.
        case workerLost(Int)
        /// A worker's thread no longer responds.
        case workerStalled(Int)
    }

    init(
        _ setup: ControlSetup,
        _ poller: consuming Poller,
        _ ipc: IPCServer,
        _ http: HTTPServer?,
        _ workers: [Worker],
        _ disk: DiskWriter,
        signals: Int32,
        handover: Handover,
        calls: CallMemory,
        replacement: ProcessReplacement,
        cluster opening: ClusterService.Opening?,
        log: Log
    ) {
        self.setup = setup
        self.poller = poller
        self.ipc = ipc
        self.http = http
        self.workers = workers
        self.disk = disk
        self.signals = signals
        self.handover = handover
        self.calls = calls
        self.replacement = replacement
        self.log = log
        control = ControlPlane(
            setup,
            restoring: calls.savedRooms,
            at: .monotonic(),
            unixTime: Double(kernel_unix_nanoseconds()) / 1e9
        )
        if let opening { cluster = ClusterService(opening, control, at: .monotonic()) }
        sampler = StatisticsSampler(workers: setup.workers)
        watchdog = Watchdog(drainCount: workers.map(\.commands.drainCount), at: .monotonic())
    }

    /// Creates the poller and registers all descriptors that the loop serves.
    static func poller(
        _ ipc: IPCServer,
        _ http: HTTPServer?,
        _ workers: [Worker],
        _ cluster: ClusterService.Opening?,
        signals: Int32
    ) throws(SystemError) -> Poller {
        let poller = try Poller()
        try ipc.watch(with: poller)
        if let cluster { try watch(cluster, with: poller) }
        try poller.add(signals, for: .readable, token: PollerToken.signals.rawValue)
        if let http {
            try poller.add(http.descriptor, for: .readable, token: PollerToken.http.rawValue)
        }
        for (index, worker) in workers.enumerated() {
            let token = PollerToken.worker(index).rawValue
            try poller.add(worker.events.descriptor, for: .readable, token: token)
        }
        return poller
    }

    /// Runs until the daemon must end.
    mutating func run() -> Outcome {
        var now = Instant.monotonic()
        takeOver(at: now)
        while true {
            let ready = poller.wait(until: deadline(at: now), at: now)
            now = .monotonic()
            // Calls come from connections and from other nodes, and some have waited here.
            control.shared.memory.residentMegabytes = memory.bytes(at: now) >> 20
            for index in 0..<ready {
                guard let token = PollerToken(rawValue: poller[index].token) else { continue }
                if let outcome = serve(token, poller[index], at: now) { return outcome }
                carryOut(at: now)
            }
            control.expire(at: now)
            ipc.expire(at: now)
            serveMetrics(at: now)
            continueUpgrade(at: now)
            if trimmer.isDue(changes: control.heapChanges, at: now) { kernel_trim_heap() }
            carryOut(at: now)
            expireCluster(at: now)
            endResumptionIfDue()
            ipc.flush(with: poller, at: now)
            replaceIfDue()
            if hasEnded, !ipc.hasOutput { return .stopped }
            if let exitDeadline, exitDeadline <= now { return .stopped }
            if let lost = watch(at: now) { return .workerStalled(lost) }
        }
    }

    /// Goes on with the calls of the life before.
    ///
    /// The rooms are saved again first, then the workers resume their transports. When all have,
    /// they may send (`noteResumed`).
    private mutating func takeOver(at now: Instant) {
        let output = control.takeOutput()
        for case .save(let changes) in output {
            calls.save(changes)
            journal(changes, at: now)
        }
        calls.takeOver(workers: setup.workers)
        for item in output {
            if case .save = item { continue }
            carryOut(item, at: now)
        }
        for worker in workers.prefix(setup.workers) {
            worker.commands.post([.fence(epoch: CallMemory.fenceEpoch)])
        }
        if control.roomCount + control.guestTransports > 0 {
            let guests = ("guests", "\(control.guestTransports)")
            log.info("calls go on", [("rooms", "\(control.roomCount)"), guests])
        }
    }

    private func tellWorkers(_ command: WorkerCommand) {
        for worker in workers.prefix(setup.workers) { worker.commands.post([command]) }
    }

    /// Gives up what the life before has left when no other home is awaited any longer.
    private mutating func endResumptionIfDue() {
        guard calls.isPostponed, !control.awaitsHomes else { return }
        calls.isPostponed = false
        tellWorkers(.endResumption)
    }

    /// Ends the workers in order, so that the next program goes on from exactly where they stop.
    private mutating func endWorkers(at now: Instant) {
        for worker in workers { worker.commands.close() }
        var running = Set(workers.indices)
        var now = now
        let end = now.advanced(milliseconds: Self.finishMilliseconds)
        while !running.isEmpty, now < end {
            for index in 0..<poller.wait(until: end, at: now) {
                guard case .worker(let worker) = PollerToken(rawValue: poller[index].token) else {
                    continue
                }
                // The last events too are saved for the next life.
                if takeEvents(worker: worker, at: now) != nil { running.remove(worker) }
            }
            now = .monotonic()
        }
    }

    /// Ends this life in order, so that another program goes on with the calls.
    mutating func handOver() {
        endWorkers(at: .monotonic())
        for case .save(let changes) in control.takeOutput() { calls.save(changes) }
        calls.handOver()
    }

    /// Checks that all workers respond; returns the index of one that does not.
    private mutating func watch(at now: Instant) -> Int? {
        guard watchdog.isDue(drainCount: workers.map(\.commands.drainCount), at: now) else {
            return nil
        }
        for worker in workers { worker.commands.ring() }
        if handover.manager.isWatching, watchdog.allRespond { handover.manager.notify(.alive) }
        return watchdog.lost
    }

    /// Flushes queued IPC output and lets workers finish posted commands, within
    /// `finishMilliseconds`.
    mutating func finish() {
        ipc.close()
        endWorkers(at: .monotonic())
    }

    /// Ends the process without freeing anything: a large daemon's rooms, one by one, would take
    /// seconds.
    consuming func exit(_ status: Int32) -> Never { _exit(status) }

    private func deadline(at now: Instant) -> Instant? {
        let all = [
            control.deadline, ipc.deadline, http?.deadline(at: now), sampler.deadline,
            trimmer.deadline, exitDeadline, watchdog.deadline, upgrade?.check.deadline,
            cluster?.deadline,
        ]
        return all.compactMap(\.self).min()
    }

    private mutating func serve(
        _ token: PollerToken,
        _ readiness: Poller.Readiness,
        at now: Instant
    ) -> Outcome? {
        switch token {
        case .listener:
            if exitDeadline == nil { ipc.accept(with: poller, at: now) }
        case .signals: return takeSignals(at: now)
        case .http: http?.run(at: now)
        case .upgrade: continueUpgrade(at: now)
        case .worker(let index): return takeEvents(worker: index, at: now)
        case .registry, .linkListener, .link: serveCluster(token, readiness, at: now)
        case .connection(let id):
            if readiness.readable {
                for line in ipc.read(id, at: now) { receive(line, from: id, at: now) }
            } else {
                ipc.wake(id, hungUp: readiness.hungUp)
            }
        }
        return nil
    }

    private mutating func takeSignals(at now: Instant) -> Outcome? {
        while true {
            let signal = kernel_signals_next(signals)
            guard signal != 0 else { return nil }
            guard signal != SIGHUP else {
                control.requestUpgrade()
                continue
            }
            guard exitDeadline == nil else { return .forced }
            log.info("shutting down", [("signal", "\(signal)")])
            exitDeadline = now.advanced(milliseconds: Self.shutdownMilliseconds)
            http?.isHealthy = false
            handover.manager.notify(.stopping)
            control.shutdown(at: now)
        }
    }

    private mutating func takeEvents(worker: Int, at now: Instant) -> Outcome? {
        let (events, closed) = workers[worker].events.drain()
        for event in events {
            if case .statistics(let token, let statistics) = event,
                StatisticsSampler.owns(token: token)
            {
                sampler.receive(statistics, token: token, from: worker)
            } else if case .fenced(CallMemory.fenceEpoch, _, _) = event {
                guard calls.noteResumed(worker) else { continue }
                // Other homes may take their time.
                calls.isPostponed = control.awaitsHomes
                tellWorkers(calls.isPostponed ? .postponeResumption : .endResumption)
            } else {
                control.receive(event, from: worker, at: now)
            }
        }
        return closed ? .workerLost(worker) : nil
    }

    private mutating func serveMetrics(at now: Instant) {
        guard let http else { return }
        http.isReady = control.acceptsRooms
        http.run(at: now)
        if let workers = sampler.take(at: now) {
            var metrics = Metrics(
                version: setup.version,
                workers: workers,
                rooms: control.roomCount,
                participants: control.participantCount,
                connections: ipc.count,
                joinsRefused: control.joinsRefused,
                isDraining: control.isDraining,
                memoryLimit: setup.limits.memoryMegabytes << 20,
                process: .current(startTime: setup.startTime)
            )
            metrics.control = control.counters
            metrics.outputs = MetricsOutputs(control, disk.use)
            metrics.nodes = cluster.map(MetricsNodes.init)
            http.publish(metrics: Array(metrics.text.utf8), at: now)
        } else if http.wantsMetrics, let report = sampler.begin(at: now) {
            for worker in workers.prefix(setup.workers) { worker.commands.post([report]) }
        }
    }

    /// Carries out the control plane's output until there is no more.
    mutating func carryOut(at now: Instant) {
        while true {
            for id in ipc.takeClosed() {
                control.connectionClosed(id)
                cluster?.withCore { $0.connectionClosed(id.rawValue) }
            }
            noteAdopted(at: now)
            let output = control.takeOutput()
            guard !output.isEmpty else { return }
            for item in output { carryOut(item, at: now) }
        }
    }

    private mutating func carryOut(_ item: ControlOutput, at now: Instant) {
        switch item {
        case .reply(let id, let line): answer(id, line, at: now)
        case .event(let event, let room, let seq): tell(event, in: room, seq: seq, at: now)
        case .serverEvent(let event): ipc.event(event, in: nil)
        case .statistics(let id, let event): reply(id, event.line)
        case .subscribe(let id, let events, let replay): subscribe(id, events, replay)
        case .commands(let worker, let commands): workers[worker].commands.post(commands)
        case .log(let level, let message, let fields):
            // Lines with different fields (room, participant) are rate-limited separately.
            log.log(level, message, cause: fields.map(\.1).joined(separator: " "), fields)
        case .close(let id): ipc.close(id, at: now)
        case .upgrade(let binary): beginUpgrade(binary, at: now)
        case .save(let changes):
            calls.save(changes)
            journal(changes, at: now)
        case .handOver(let room, let isForced):
            cluster?.withCore { $0.handOver(room, isForced: isForced, at: now) }
        case .place(let node, let asHome, let message):
            sendPlace(message, to: node, asHome: asHome)
        case .exit:
            hasEnded = true
            leaveCluster(by: exitDeadline)
        }
    }

    /// Queues a line for a connection.
    mutating func reply(_ id: ConnectionID, _ line: [UInt8]) { ipc.reply(id, line) }

    /// From the first signal to the exit: two seconds less the time that `finish` takes.
    private static let shutdownMilliseconds: Int64 = 1_700
    private static let finishMilliseconds: Int64 = 150
}

/// Source of a readiness report of the control thread's poller.
enum PollerToken: Equatable {
    case listener, signals, http, upgrade, registry, linkListener
    case worker(Int)
    case connection(ConnectionID)
    case link(UInt64)

    /// Encoded token: the kind in the low byte, the number above it.
    var rawValue: UInt64 {
        switch self {
        case .listener: 0
        case .signals: 1
        case .http: 2
        case .worker(let index): UInt64(index) << 8 | 3
        case .connection(let id): id.rawValue << 8 | 4
        case .upgrade: 5
        case .registry: 6
        case .linkListener: 7
        case .link(let id): id << 8 | 8
        }
    }

    init?(rawValue: UInt64) {
        switch rawValue & 0xff {
        case 0: self = .listener
        case 1: self = .signals
        case 2: self = .http
        case 3: self = .worker(Int(rawValue >> 8))
        case 4: self = .connection(ConnectionID(rawValue: rawValue >> 8))
        case 5: self = .upgrade
        case 6: self = .registry
        case 7: self = .linkListener
        case 8: self = .link(rawValue >> 8)
        default: return nil
        }
    }
}
