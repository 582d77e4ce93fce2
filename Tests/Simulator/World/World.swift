import Contract
import ControlPlane
import Daemon
import HostilePeer
import JSON
import LoadPeer
package import RTP
import Rooms
package import SFU
import TestSupport
import WorkerInterface

/// Whole rooms in virtual time from one seed: the real control plane with its JSON, real cores with
/// real rings between them, clients with real ICE, DTLS and SRTP.
///
/// Threads, sockets, the network and the callers are simulated, and fail as the seed decides. Time
/// advances from one event to the next, so an hour in which little happens takes little.
package final class World {
    /// A scheduled event.
    enum ScheduledEvent {
        case round(worker: Int)
        case control
        case toWorker(Int, Path, [UInt8])
        case toClient(Int, Parcel)
        case tick(client: Int)
        case line(ConnectionID, [UInt8])
        case reply(Int64, Result<JSON, IPCError>)
        case event(ConnectionID, [UInt8])
        case fence(worker: Int, WorkerEvent)
        case commands(worker: Int, [WorkerCommand])
        case act(() -> Void)
    }

    /// A datagram on a link to a client: media is decrypted when it is written, the rest on
    /// arrival.
    enum Parcel {
        case datagram([UInt8])
        case media([UInt8])
    }

    let seed: UInt64
    /// Whether a violation also reports the workers' state and the events before it.
    package var isVerbose = false
    /// Last events, kept if a violation is to report them.
    private var recentEvents: [String] = []
    let plant: PlantedBug?
    var random: SeededRandom
    /// Random numbers of a planted bug, separate so that it changes nothing else.
    var plantRandom: SeededRandom
    /// Start of the history by the machine's clock, which shows its uptime.
    let start: Instant
    var now: Instant
    var schedule = Schedule<ScheduledEvent>()
    package var trace = TraceHash()
    package private(set) var violation: Violation?
    package var tally = Tally()

    var plane: ControlPlane
    var setup: ControlSetup
    /// Records of the rooms, as saved for the next process.
    var saved: [String: [UInt8]] = [:]
    var workers: [SimulatedWorker] = []
    var clients: [Int: WorldClient] = [:]
    var clientsByPath: [Path: Int] = [:]
    var rights = RightsLedger()
    /// Addresses to which media may go, as the network knows them.
    var consent = ConsentLedger()
    var ledgers: [Int: EgressLedger] = [:]
    /// Media packets between core and socket, by their unencrypted header fields.
    var underWay: [Wire: WrittenPacket] = [:]
    var wakes: [Instant?]
    var controlWake: Instant?
    /// Time until which each thread is stalled: one of them, or the whole process.
    var stalled: [Instant]
    var controlStalled = Instant(nanoseconds: 0)
    /// End of the last stall.
    var lastStall = Instant(nanoseconds: 0)
    var hasFaults = false
    /// Time at which the faults stopped.
    var calmed = Instant(nanoseconds: 0)
    var callers: Callers
    /// Lines that the control thread has not read.
    var lines: [(connection: ConnectionID, line: [UInt8])] = []
    var halls: [SimulatedRoom] = []
    var lastSeat = 0
    var lastClient = 0
    var lastHall: UInt32 = 0
    /// Fences that a planted bug has already passed.
    var fencesTaken: Set<Fence> = []
    /// Mirrors that each worker has had.
    var mirrors: [Set<PublicationID>]
    /// Mark of the last packet that was no retransmission.
    var lastMark: MediaMark?
    /// Number of changes of address by clients.
    var moves = 0
    /// Token of the harness's own last request for a worker's report.
    var lastToken = UInt64(1) << 62
    /// Offset of Unix time, which may jump.
    var unixOffset = 1_700_000_000.0
    /// Rate of the publishers' media.
    var pace = Pace.settling
    /// Output of the client that has just sent.
    var sent = Batch(capacity: 64)
    /// Output of a client in response to a received packet: none.
    var unsaid = Batch(capacity: 1)

    /// Whether each room has an adversary; below, the only plan that it has, if just one is tried.
    let hasAdversaries: Bool
    let onlyPlan: AdversaryPlan?
    /// Random numbers of adversaries, separate so that they change nothing else.
    var adversaryRandom: SeededRandom
    /// RTCP that each worker had read at its last report.
    var reportsRead: [Int: (count: UInt64, time: Instant)] = [:]
    /// Whether adversaries make no calls, while all open calls are awaited.
    var isSettling = false

    let identity: DTLSIdentity
    let packetPool: Int
    let context = SRTPContext(engine: .best)
    /// Usual number of rooms.
    let roomCount: Int

    /// A packet's key: its unencrypted header fields.
    struct Wire: Hashable {
        var path: Path
        var ssrc: UInt32
        var sequence: UInt16
    }

    /// Milliseconds from packet to packet of audio, and from frame to frame.
    struct Pace {
        var audio: Int64
        var video: Int64

        static let wild = Self(audio: 20, video: 100)
        static let settling = Self(audio: 100, video: 200)
        static let quiet = Self(audio: 1_000, video: 1_000)
    }

    /// Totals of a history.
    package struct Tally {
        package var datagrams = 0
        package var media = 0
        package var frames = 0
        package var calls = 0
        package var events = 0
        package var rounds = 0
        package var checks = 0
        /// Audio packets that had to arrive while nothing failed.
        package var listened = 0
        /// Messages of adversaries.
        package var hostile = 0
        /// Pairs of viewer and source whose media was received.
        package var alive = 0
        /// Processes that went on after another.
        package var restarts = 0

        package init() {}
    }

    package init(
        seed: UInt64,
        identity: DTLSIdentity,
        plant: PlantedBug? = nil,
        adversary: AdversaryChoice = .some,
        onlyPlan: AdversaryPlan? = nil,
        start: Instant = Instant(nanoseconds: 1_000_000_000)
    ) {
        self.seed = seed
        self.start = start
        now = start
        self.plant = plant
        self.identity = identity
        random = SeededRandom(seed: seed &* 0x9e37_79b9_7f4a_7c15)
        plantRandom = SeededRandom(seed: ~seed)
        adversaryRandom = SeededRandom(seed: seed &* 0xd134_2543_de82_ef95 ^ 0x2545_f491)
        let isChosen = adversaryRandom.chance(0.5)
        hasAdversaries = adversary == .always || (adversary == .some && isChosen)
        self.onlyPlan = onlyPlan
        let count = random.chance(0.6) ? 2 : 1
        roomCount = Int(random.pick(1...2))
        let source = RandomSource.seeded(random.next())
        var limits = ControlLimits()
        limits.workerSpread = 0
        if random.chance(0.3) { limits.eventsPerRoom = 20 }
        setup = ControlSetup(
            version: "1",
            bootID: "boot",
            startTime: unixOffset,
            random: source,
            fingerprint: identity.fingerprint,
            candidates: (0..<count).map {
                [Address(ipv4: 0x7f00_0001, port: 5004 + UInt16($0))]
            },
            udp: (0..<count).map { "127.0.0.1:\(5004 + $0)" },
            limits: limits
        )
        plane = ControlPlane(setup)
        wakes = Array(repeating: nil, count: count)
        stalled = Array(repeating: now, count: count)
        mirrors = Array(repeating: [], count: count)
        callers = Callers()
        packetPool = random.chance(0.3) ? 1_024 : 4_096
        workers = SimulatedWorker.mesh(
            of: count,
            packetPool: packetPool,
            identity: identity,
            at: now,
            random: &random
        )
    }

    /// Virtual seconds since the beginning.
    package var seconds: Double { Double(now.nanoseconds - start.nanoseconds) / 1e9 }

    /// Records the first violation; the history ends there.
    func violate(_ invariant: Invariant, _ text: String) {
        guard violation == nil else { return }
        let before = recentEvents.suffix(Self.chronicled).map { "\n  \($0)" }.joined()
        violation = Violation(invariant: invariant, text: text + before, seconds: seconds)
    }

    /// Records an event.
    func tell(_ text: @autoclosure () -> String) {
        guard isVerbose else { return }
        recentEvents.append("\(seconds) \(text())")
        if recentEvents.count > 2 * Self.chronicled { recentEvents.removeFirst(Self.chronicled) }
    }

    private static let chronicled = 100

    func violate(_ objection: (Invariant, String)?) {
        guard let objection else { return }
        violate(objection.0, objection.1)
    }

    /// Whether the planted bug strikes now; always `false` for any other bug.
    func strikes(_ bug: PlantedBug, oneIn number: Int64 = 1) -> Bool {
        plant == bug && (number == 1 || plantRandom.pick(1...number) == 1)
    }

    func after(milliseconds: Int64, _ act: @escaping () -> Void) {
        schedule.add(.act(act), at: now.advanced(milliseconds: milliseconds))
    }
}

// Time.
extension World {
    /// Advances the clock, at most to the first violation.
    func run(milliseconds: Int64) {
        let end = now.advanced(milliseconds: milliseconds)
        run(until: end) { false }
    }

    /// Advances the clock until a condition holds, at most to `end`.
    func run(until end: Instant, or isEnough: () -> Bool) {
        while violation == nil, !isEnough(), let next = schedule.next, next <= end,
            let (time, happening) = schedule.takeNext()
        {
            now = max(now, time)
            carryOut(happening)
        }
        if violation == nil, !isEnough() { now = max(now, end) }
    }

    private func carryOut(_ happening: ScheduledEvent) {
        switch happening {
        case .round(let worker):
            guard wakes[worker] == now else { return }
            wakes[worker] = nil
            guard stalled[worker] <= now else { return wake(worker) }
            round(worker)
        case .control:
            guard controlWake == now else { return }
            controlWake = nil
            guard controlStalled <= now else { return wakeControl() }
            control()
        case .toWorker(let worker, let path, let bytes): arrive(bytes, from: path, at: worker)
        case .toClient(let index, let parcel): arrive(parcel, at: index)
        case .tick(let index): tick(index)
        case .line(let connection, let line):
            lines.append((connection, line))
            wakeControl()
        case .reply(let id, let outcome): answered(id, outcome)
        case .event(let connection, let line): heard(line, on: connection)
        case .fence(let worker, let event):
            plane.receive(event, from: worker, at: now)
            takeOutput()
        case .commands(let worker, let commands):
            workers[worker].mailbox += commands
            wake(worker)
        case .act(let act): act()
        }
    }

    /// Schedules a worker's next round, or for the end of its stall.
    func wake(_ worker: Int, at time: Instant? = nil) {
        var due = time ?? now.advanced(nanoseconds: random.pick(20_000...lag))
        due = max(due, stalled[worker], now)
        if let pauseEnd = workers[worker].round.pauseEnd { due = max(due, pauseEnd) }
        if let wake = wakes[worker], wake <= due { return }
        wakes[worker] = due
        schedule.add(.round(worker: worker), at: due)
    }

    func wakeControl() {
        let due = max(now.advanced(nanoseconds: random.pick(20_000...lag)), controlStalled)
        if let wake = controlWake, wake <= due { return }
        controlWake = due
        schedule.add(.control, at: due)
    }

    /// Longest delay of a thread's next round, in nanoseconds.
    private var lag: Int64 { hasFaults ? 6_000_000 : 800_000 }
}
