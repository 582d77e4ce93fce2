import Contract
import RTP
import Rooms
import WorkerInterface

/// Connection and request that await a reply.
struct Caller: Hashable, Sendable {
    var connection: ConnectionID
    var request: RequestID
    /// Node at which the call was made; `nil` for this one.
    var node: String?
}

/// Judged call or notice whose reply and events wait for its fence.
///
/// The reply and the events are encoded when the call is judged, except for the fence's own
/// figures. They therefore show the room after this call and before the next.
struct Operation {
    enum Reply {
        case none
        case written(ConnectionID, [UInt8])
        /// `{fence}`, completed with the fence's figures.
        case fenced(Caller)
        /// `{results, fence}`, completed with the fence's figures.
        case dropped(Caller, [ParticipantDrop.Dropped])
        case targets(Caller, [TargetResult])
        case watched(Caller, [SubscriptionSet.Watched])
        /// The start of a recording, or its failure.
        case recording(Caller, OutputID)

        /// Connection that awaits the reply.
        var connection: ConnectionID? {
            switch self {
            case .none: nil
            case .written(let connection, _): connection
            case .fenced(let caller), .dropped(let caller, _), .targets(let caller, _),
                .watched(let caller, _), .recording(let caller, _):
                caller.connection
            }
        }
    }

    struct Event {
        var seq: UInt64
        var line: EventLine
        /// A stopped recording, whose line is encoded when its files are known, at the tap's fence.
        var stopped: StoppedRecording?
        /// A participant who left, whose line is encoded when its transports' quality is known.
        var departed: DepartedParticipant?
    }

    /// Part of an operation that begins when its events are out.
    struct Sequel {
        var commands: [Int: [WorkerCommand]]
        var reply: Reply
        var freed: [Room.WorkerResource]
    }

    var reply = Reply.none
    private(set) var events: [Event] = []
    /// Indices of the events that await a transport's quality.
    private var accounts: [Room.TransportLocation: [Int]] = [:]
    /// Handles to release once the workers no longer use them.
    var freed: [Room.WorkerResource] = []
    /// Workers that have not passed the fence yet.
    var waiting: Set<Int> = []
    /// Room operation that is pending until then.
    var process: Room.PendingOperation?
    /// Time at which the last worker passed the fence.
    var passed: Instant
    /// Packets forwarded under the revoked right, summed over the workers.
    var packets: UInt64 = 0
    /// Nodes that did not pass the fence; their leases are over.
    var silent: Set<String> = []

    /// Commands, and the reply to follow them, that wait until the events are out.
    private(set) var sequel: Sequel?
    /// Time at which the gates were closed, in the second part of an operation.
    private(set) var gatesClosed: Instant?

    init(at now: Instant) { passed = now }

    /// Makes the second part of an operation.
    init(_ sequel: Sequel, after first: Operation) {
        reply = sequel.reply
        freed = sequel.freed
        passed = first.passed
        packets = first.packets
        silent = first.silent
        gatesClosed = first.passed
    }

    /// Lets commands, the reply and the release of handles wait until the events are out.
    mutating func postpone(_ commands: [Int: [WorkerCommand]]) {
        sequel = Sequel(commands: commands, reply: reply, freed: freed)
        reply = .none
        freed = []
    }

    /// Drops the reply, if the connection awaits it.
    mutating func dropReply(to connection: ConnectionID) {
        if reply.connection == connection { reply = .none }
        if sequel?.reply.connection == connection { sequel?.reply = .none }
    }

    /// Drops the events and the replies.
    mutating func silence() {
        events = []
        accounts = [:]
        reply = .none
        sequel?.reply = .none
    }

    /// Sets the events, in the order of their numbers.
    mutating func tell(_ events: [Event]) {
        self.events = events
        for (index, event) in events.enumerated() {
            for transport in event.departed?.awaiting ?? [] {
                accounts[transport, default: []].append(index)
            }
        }
    }

    /// Adds the quality of an ended transport to the accounts of those who left with it.
    mutating func settle(_ transport: Room.TransportLocation, _ quality: LinkQuality) {
        for index in accounts.removeValue(forKey: transport) ?? [] {
            events[index].departed?.settle(transport, quality)
        }
    }
}

/// Operations that wait for a fence, by its epoch.
struct PendingOperations {
    private var operations: [UInt64: Operation] = [:]
    private var lastEpoch: UInt64 = 0
    /// Quality of ended transports, until the operation that ended them is complete.
    private var qualities: [Room.TransportLocation: LinkQuality] = [:]

    /// Step of a fence when one more worker has passed it.
    enum Passing { case awaited, complete, unexpected }

    var isEmpty: Bool { operations.isEmpty }
    var count: Int { operations.count }
    var qualityCount: Int { qualities.count }
    /// Handles that the pending operations will release.
    var freed: [Room.WorkerResource] {
        operations.values.flatMap { $0.freed + ($0.sequel?.freed ?? []) }
    }

    /// Adds an operation that awaits these workers, and returns its epoch.
    mutating func add(_ operation: Operation, awaiting workers: some Sequence<Int>) -> UInt64 {
        var operation = operation
        operation.waiting.formUnion(workers)
        lastEpoch += 1
        operations[lastEpoch] = operation
        return lastEpoch
    }

    /// Records that a worker has executed all commands before a fence.
    mutating func pass(
        _ epoch: UInt64,
        by worker: Int,
        at passed: Instant,
        _ packets: UInt64
    ) -> Passing {
        guard var operation = operations[epoch], operation.waiting.remove(worker) != nil else {
            return .unexpected
        }
        operation.passed = max(operation.passed, passed)
        operation.packets &+= packets
        operations[epoch] = operation
        return operation.waiting.isEmpty ? .complete : .awaited
    }

    /// Whether a worker's fence is still awaited.
    func awaits(_ epoch: UInt64, from worker: Int) -> Bool {
        operations[epoch]?.waiting.contains(worker) == true
    }

    /// Notes that a node has not passed a fence.
    mutating func noteSilence(of node: String, _ epoch: UInt64) {
        operations[epoch]?.silent.insert(node)
    }

    /// Removes and returns an operation whose fence all workers have passed.
    mutating func takeComplete(_ epoch: UInt64) -> Operation? {
        guard let operation = operations[epoch], operation.waiting.isEmpty else { return nil }
        operations[epoch] = nil
        return operation
    }

    /// Keeps the quality of a transport that a worker has ended.
    mutating func note(_ quality: LinkQuality, of transport: Room.TransportLocation) {
        qualities[transport] = quality
    }

    mutating func takeQuality(of transport: Room.TransportLocation) -> LinkQuality? {
        qualities.removeValue(forKey: transport)
    }

    /// Adds the quality of an ended transport to a pending operation's accounts.
    mutating func settle(
        _ transport: Room.TransportLocation,
        _ quality: LinkQuality,
        _ epoch: UInt64
    ) {
        operations[epoch]?.settle(transport, quality)
    }

    func workersAwaited(atFence epoch: UInt64) -> Set<Int> { operations[epoch]?.waiting ?? [] }

    /// Drops the replies to a closed connection; its calls take effect.
    mutating func dropReplies(to connection: ConnectionID) {
        for epoch in Array(operations.keys) { operations[epoch]?.dropReply(to: connection) }
    }

    /// Keeps operations of a room that goes on at another node from being told.
    mutating func silence(_ epochs: [UInt64]) {
        for epoch in epochs { operations[epoch]?.silence() }
    }

    /// Keeps operations of a closed room from affecting a later room of the same name.
    mutating func detach(_ epochs: [UInt64]) {
        for epoch in epochs { operations[epoch]?.process = nil }
    }
}
