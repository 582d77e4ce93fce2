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

/// A worker without its thread: the round of the daemon, driven through a `SimulatedPort`.
///
/// The socket sometimes blocks, so that datagrams wait in a real send queue.
package final class SimulatedWorker {
    /// Steps of the port that can be left out, to show that the tests detect it.
    struct Omissions: OptionSet {
        var rawValue: Int

        /// Queued datagrams are not removed when the right to them is revoked.
        static let withdrawal = Self(rawValue: 1)
        /// Datagrams that the round sends leave only in a later round.
        static let flush = Self(rawValue: 2)
        /// Messages for other workers stay unpublished in the ring.
        static let publishing = Self(rawValue: 4)
    }

    /// A datagram in the socket's receive queue.
    struct Arrival {
        let path: Path
        let bytes: [UInt8]
        let at: Instant
    }

    /// A datagram of a round that did not send.
    struct Unsent {
        let path: Path
        let bytes: [UInt8]
        let content: DatagramContent
    }

    let index: Int
    var round: WorkerRound
    var relays: RelayPort
    /// Commands posted by the control plane.
    var mailbox: [WorkerCommand] = []
    /// Datagrams in the socket's receive queue.
    var arrived: [Arrival] = []
    /// Events for the control thread.
    var events: [WorkerEvent] = []
    var nextRound: Instant
    /// Time until which the socket blocks.
    var refusesUntil: Instant
    var queue = SendQueue(limits: SendQueueLimits(datagrams: 1_024))
    var staging = Batch(capacity: 64)
    var omissions: Omissions = []
    var unsent: [Unsent] = []
    /// Ends of the node's leases on the rooms of other homes, by their numbers.
    var leaseEnds: [Int: Instant] = [:]
    /// Unix time minus the clock, in nanoseconds; the round reads it now and then.
    var wallClockOffset: Int64 = 0
    /// Number of datagrams that the round has read.
    var taken: UInt64 = 0
    /// Number of datagrams that the core had received at each requested report.
    var takenAtReport: [UInt64: UInt64] = [:]
    /// Reports that the round's commands have requested.
    var requestedReports: [UInt64] = []
    /// Workers whose ring has been written to since this was last cleared.
    var rung: Set<Int> = []
    private var lastRound: Instant
    /// Memory that outlives the process.
    private let region: SavedRegion
    private var older: SavedState?

    init(
        index: Int,
        core: consuming Core,
        relays: consuming RelayPort,
        _ region: SavedRegion,
        at now: Instant
    ) {
        self.index = index
        self.region = region
        // Any full output ends a turn, as time stands still during a round.
        round = WorkerRound(core: core, at: now, cpu: 0, turnNanoseconds: 0)
        self.relays = relays
        nextRound = now
        lastRound = now
        refusesUntil = now
    }

    /// State that the worker has left in its memory.
    var state: SavedState? { older ?? SavedRegion(copying: region).state }

    /// Makes the next worker go on from the memory as it is now (a planted bug).
    func keepState() { older = SavedRegion(copying: region).state }

    /// Makes workers with rings between them, each with a core of its own, that go on from what
    /// those of an earlier process have left.
    ///
    /// `threads` has their rings, and those of other threads behind them, if there are any.
    static func mesh(
        of count: Int,
        in threads: RelayMesh? = nil,
        packetPool: Int,
        identity: DTLSIdentity,
        after previous: [SavedState?] = [],
        at now: Instant,
        random: inout SeededRandom
    ) -> [SimulatedWorker] {
        let mesh = threads ?? RelayMesh(workers: count)
        var limits = CoreLimits.default
        limits.packetPool = packetPool
        return (0..<count).map { index in
            let region = SavedRegion(transports: Self.transports, slots: Self.slots)
            let core = Core(
                limits: limits,
                seed: random.next(),
                identity: identity,
                engine: .best,
                memory: region.makeMemory(),
                previous: previous.indices.contains(index) ? previous[index] : nil
            )
            return SimulatedWorker(
                index: index,
                core: core,
                relays: mesh.port(of: index),
                region,
                at: now
            )
        }
    }

    /// Objects of a worker that its memory has room for.
    private static let transports = 256
    private static let slots = 1_024

    /// Runs rounds until all datagrams are read that have arrived so far.
    ///
    /// Half of them arrive only while the first round sends the others.
    func round(at now: Instant, through network: some SimulatedNetwork) {
        let end = taken + UInt64(arrived.count)
        run(at: now, early: arrived.count - arrived.count / 2, through: network)
        while taken < end || round.deferredCount > 0 {
            run(at: now, early: end > taken ? Int(end - taken) : 0, through: network)
        }
    }

    private func run(at now: Instant, early: Int, through network: some SimulatedNetwork) {
        var port = SimulatedPort(of: self, early: early, since: lastRound, at: now, network)
        _ = round.run(through: &port)
        lastRound = now
        let received = taken - UInt64(round.deferredCount)
        for token in requestedReports { takenAtReport[token] = received }
        requestedReports = []
    }
}

extension Batch {
    /// Copies the datagram at `index`.
    func bytes(at index: Int) -> [UInt8] {
        let datagram = self[index]
        return datagram.indices.map { datagram[$0] }
    }
}
