import RTP
import SFU
import Testing

@testable import Sockets

/// A worker's loop without its thread: a core, its rings, and a socket that now and then takes
/// nothing, so that what should leave waits in a real send queue.
final class SimulatedWorker {
    let index: Int
    var core: Core
    var relays: RelayPort
    var output = Batch(capacity: 2 * Core.batchCapacity)
    /// What the control plane has posted.
    var mailbox: [Command] = []
    /// Datagrams in the socket's queue.
    var arrived: [(path: Path, bytes: [UInt8])] = []
    /// What waits for the control thread.
    var events: [SFU.Event] = []
    var nextRound: Instant
    /// The socket takes nothing before.
    var refusesUntil: Instant
    var queue = SendQueue(limits: SendQueueLimits(datagrams: 1_024))
    var staging = Batch(capacity: 64)

    init(index: Int, core: consuming Core, relays: consuming RelayPort, at now: Instant) {
        self.index = index
        self.core = core
        self.relays = relays
        nextRound = now
        refusesUntil = now
    }

    /// Takes what the ring to it holds; returns whether there was anything.
    func takeRelayed(at now: Instant) -> Bool {
        guard relays.hasNews() else { return false }
        _ = core.receive(from: &relays, at: now)
        return true
    }
}

// One round, step by step as in `WorkerLoop.run`.
extension SimulatedDaemon {
    private static let relayRounds = 4

    func round(_ worker: SimulatedWorker) {
        let datagrams = worker.arrived
        worker.arrived = []
        for (number, datagram) in datagrams.enumerated() {
            if number % Core.batchCapacity == 0 { flush(worker) }
            if worker.output.free < Core.replyCapacity { send(worker) }
            worker.core.receive(
                datagram.bytes.span,
                on: datagram.path,
                at: now,
                into: &worker.output
            )
        }
        resume(worker)
        flush(worker)
        for _ in 0..<Self.relayRounds where worker.takeRelayed(at: now) { flush(worker) }
        takeCommands(worker)
        worker.core.expire(at: now, into: &worker.output)
        flush(worker)
        while let event = worker.core.takeEvent() { worker.events.append(event) }
    }

    private func takeCommands(_ worker: SimulatedWorker) {
        guard !worker.mailbox.isEmpty else { return }
        for command in worker.mailbox {
            if worker.output.free < Core.replyCapacity { flush(worker) }
            worker.core.apply(command, at: now, into: &worker.output)
        }
        worker.mailbox = []
        worker.queue.withdraw(worker.core.takeLostStreams())
    }

    private func flush(_ worker: SimulatedWorker) {
        worker.core.relay(into: &worker.relays, at: now)
        for other in workers.indices where other != worker.index {
            _ = worker.relays.publish(to: other)
        }
        while worker.core.flush(into: &worker.output, at: now) { send(worker) }
        send(worker)
    }

    /// Gives to the socket what the core has written for it.
    private func send(_ worker: SimulatedWorker) {
        for position in 0..<worker.output.count {
            let path = worker.output.path(at: position)
            let bytes = worker.output.bytes(at: position)
            noteWritten(bytes, to: path)
            if worker.queue.isEmpty, worker.refusesUntil <= now {
                leave(bytes, to: path)
            } else {
                let content = worker.output.content(at: position)
                worker.queue.append(bytes.span, to: path, as: content, at: now)
            }
        }
        worker.output.removeAll()
    }

    /// The socket takes again what waits.
    private func resume(_ worker: SimulatedWorker) {
        worker.queue.expire(at: now)
        while worker.refusesUntil <= now, !worker.queue.isEmpty {
            let count = worker.queue.stage(into: &worker.staging, limit: worker.staging.capacity)
            for position in 0..<worker.staging.count {
                let path = worker.staging.path(at: position)
                leave(worker.staging.bytes(at: position), to: path)
            }
            worker.staging.removeAll()
            worker.queue.removeFirst(count)
        }
    }
}

extension Batch {
    /// A copy of the datagram at `index`.
    func bytes(at index: Int) -> [UInt8] {
        let datagram = self[index]
        return datagram.indices.map { datagram[$0] }
    }
}
