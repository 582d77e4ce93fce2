import Daemon
import RTP
import SFU
import Sockets
import TestSupport
import WorkerInterface

/// The network on the other side of a worker's socket.
protocol SimulatedNetwork: AnyObject {
    /// Takes a datagram that the core has written; it may be queued before it leaves.
    func written(_ bytes: [UInt8], to path: Path, by worker: Int)
    /// Takes a datagram that has left the worker's socket.
    func leave(_ bytes: [UInt8], to path: Path, from worker: Int)
}

/// A worker's loop without its thread: a core, its rings, and a socket.
///
/// The socket sometimes blocks, so that datagrams wait in a real send queue.
package final class SimulatedWorker {
    /// Steps of a round that can be left out, to show that the tests detect it.
    struct Omissions: OptionSet {
        var rawValue: Int

        /// Queued datagrams are not removed when the right to them is revoked.
        static let withdrawal = Self(rawValue: 1)
        /// Received datagrams stay in the core.
        static let flush = Self(rawValue: 2)
        /// Messages for other workers stay unpublished in the ring.
        static let publishing = Self(rawValue: 4)
    }

    let index: Int
    var core: Core
    var relays: RelayPort
    var output = Batch(capacity: 2 * Core.batchCapacity)
    /// Commands posted by the control plane.
    var mailbox: [WorkerCommand] = []
    struct Arrival {
        let path: Path
        let bytes: [UInt8]
        let at: Instant
    }

    /// Datagrams in the socket's receive queue.
    var arrived: [Arrival] = []
    private var stalls: StaleMediaDetector
    private var lastRound: Instant
    /// Events for the control thread.
    var events: [WorkerEvent] = []
    var nextRound: Instant
    /// Time until which the socket blocks.
    var refusesUntil: Instant
    var queue = SendQueue(limits: SendQueueLimits(datagrams: 1_024))
    var staging = Batch(capacity: 64)
    var omissions: Omissions = []
    /// Number of datagrams that the core has received.
    var taken: UInt64 = 0
    /// Value of `taken` at each requested report.
    var takenAtReport: [UInt64: UInt64] = [:]
    /// Workers whose ring has been written to since this was last cleared.
    var rung: Set<Int> = []
    private let workers: Int

    private static let relayRounds = 4
    private static let expiriesOfRound = 32

    init(
        index: Int,
        core: consuming Core,
        relays: consuming RelayPort,
        at now: Instant
    ) {
        self.index = index
        self.core = core
        workers = relays.workers
        self.relays = relays
        nextRound = now
        lastRound = now
        stalls = StaleMediaDetector(at: now, cpu: 0)
        refusesUntil = now
    }

    /// Makes workers with rings between them, each with a core of its own.
    static func mesh(
        of count: Int,
        packetPool: Int,
        identity: DTLSIdentity,
        at now: Instant,
        random: inout SimulatedRandom
    ) -> [SimulatedWorker] {
        let mesh = RelayMesh(workers: count)
        var limits = CoreLimits.default
        limits.packetPool = packetPool
        return (0..<count).map { index in
            let core = Core(
                limits: limits,
                seed: random.next(),
                identity: identity,
                engine: .best
            )
            return SimulatedWorker(index: index, core: core, relays: mesh.port(of: index), at: now)
        }
    }

    /// Runs one round, step by step as in `WorkerLoop.run`.
    func round(at now: Instant, through network: some SimulatedNetwork) {
        _ = stalls.slept(since: lastRound, until: now) { now.nanoseconds }
        lastRound = now
        let datagrams = arrived
        arrived = []
        let half = datagrams.count / 2
        receive(datagrams[..<half], at: now, through: network)
        // Simulates that the rest arrives while the first half is being sent.
        let late = preemptBatch(datagrams[half...], at: now, through: network)
        receive(late[...], at: now, through: network)
        resume(at: now, through: network)
        if !omissions.contains(.flush) { flush(at: now, through: network) }
        for _ in 0..<Self.relayRounds where takeRelayed(at: now) {
            flush(at: now, through: network)
        }
        takeCommands(at: now, through: network)
        for _ in 0..<Self.expiriesOfRound {
            guard core.expire(at: now, into: &output) else { break }
        }
        if !omissions.contains(.flush) { flush(at: now, through: network) }
        while let event = core.takeEvent() { events.append(event) }
    }

    private func receive(
        _ datagrams: ArraySlice<Arrival>,
        at now: Instant,
        through network: some SimulatedNetwork
    ) {
        for (number, datagram) in datagrams.enumerated() {
            if number % Core.batchCapacity == 0 { flush(at: now, through: network) }
            receive(datagram, at: now, through: network)
        }
    }

    private func receive(
        _ datagram: Arrival,
        at now: Instant,
        through network: some SimulatedNetwork
    ) {
        if output.free < Core.replyCapacity { send(at: now, through: network) }
        taken += 1
        core.receive(
            datagram.bytes.span,
            on: datagram.path,
            at: now,
            staleMedia: stalls.staleMedia(datagram.at.nanoseconds),
            into: &output
        )
    }

    /// Sends datagrams that may preempt the received batch; returns the remaining ones.
    private func preemptBatch(
        _ datagrams: ArraySlice<Arrival>,
        at now: Instant,
        through network: some SimulatedNetwork
    ) -> [Arrival] {
        guard !datagrams.isEmpty else { return [] }
        core.preempt()
        var late: [Arrival] = []
        for datagram in datagrams {
            if core.mayOvertake(datagram.bytes.span, on: datagram.path) {
                receive(datagram, at: now, through: network)
            } else {
                late.append(datagram)
            }
        }
        flush(at: now, through: network)
        core.resumePreempted()
        return late
    }

    /// Reads the rings to this worker; returns whether there was anything in them.
    private func takeRelayed(at now: Instant) -> Bool {
        guard relays.hasMessages() else { return false }
        _ = core.receive(from: &relays, at: now)
        return true
    }

    private func takeCommands(at now: Instant, through network: some SimulatedNetwork) {
        guard !mailbox.isEmpty else { return }
        for command in mailbox {
            if output.free < Core.replyCapacity { flush(at: now, through: network) }
            if case .report(let token) = command { takenAtReport[token] = taken }
            core.apply(command, at: now, into: &output)
        }
        mailbox = []
        let lost = core.takeRevokedSSRCs()
        if !omissions.contains(.withdrawal) { queue.withdraw(lost) }
    }

    private func flush(at now: Instant, through network: some SimulatedNetwork) {
        core.relay(into: &relays, at: now)
        if !omissions.contains(.publishing) {
            for other in 0..<workers where other != index {
                if relays.publish(to: other) { rung.insert(other) }
            }
        }
        while core.flush(into: &output, at: now) { send(at: now, through: network) }
        send(at: now, through: network)
    }

    /// Gives the core's output to the socket.
    private func send(at now: Instant, through network: some SimulatedNetwork) {
        for position in 0..<output.count {
            let path = output.path(at: position)
            let bytes = output.bytes(at: position)
            network.written(bytes, to: path, by: index)
            if queue.isEmpty, refusesUntil <= now {
                network.leave(bytes, to: path, from: index)
            } else {
                let content = output.content(at: position)
                queue.append(bytes.span, to: path, as: content, at: now)
            }
        }
        output.removeAll()
    }

    /// Resumes sending the queued datagrams.
    private func resume(at now: Instant, through network: some SimulatedNetwork) {
        queue.expire(at: now)
        while refusesUntil <= now, !queue.isEmpty {
            let count = queue.stage(into: &staging, limit: staging.capacity)
            for position in 0..<staging.count {
                let path = staging.path(at: position)
                network.leave(staging.bytes(at: position), to: path, from: index)
            }
            staging.removeAll()
            queue.removeFirst(count)
        }
    }
}

extension Batch {
    /// Copies the datagram at `index`.
    func bytes(at index: Int) -> [UInt8] {
        let datagram = self[index]
        return datagram.indices.map { datagram[$0] }
    }
}
