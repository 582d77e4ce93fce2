import Contract
import RTP
import Rooms
import WorkerInterface

/// Connection and request that await a reply.
struct Caller: Hashable, Sendable {
    var connection: ConnectionID
    var request: RequestID
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
        /// The start of a recording, or its failure.
        case recording(Caller, OutputID)

        /// Connection that awaits the reply.
        var connection: ConnectionID? {
            switch self {
            case .none: nil
            case .written(let connection, _): connection
            case .fenced(let caller), .dropped(let caller, _), .recording(let caller, _):
                caller.connection
            }
        }
    }

    struct Event {
        var seq: UInt64
        var line: [UInt8]
        /// A stopped recording, whose line is encoded when its files are known, at the tap's fence.
        var stopped: StoppedRecording?
    }

    var reply = Reply.none
    var events: [Event] = []
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

    init(at now: Instant) { passed = now }
}

/// Operations that wait for a fence, by its epoch.
struct PendingOperations {
    private var operations: [UInt64: Operation] = [:]
    private var lastEpoch: UInt64 = 0

    /// Step of a fence when one more worker has passed it.
    enum Passing { case awaited, complete, unexpected }

    var isEmpty: Bool { operations.isEmpty }
    var count: Int { operations.count }
    /// Handles that the pending operations will release.
    var freed: [Room.WorkerResource] { operations.values.flatMap(\.freed) }

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

    /// Removes and returns an operation whose fence all workers have passed.
    mutating func takeComplete(_ epoch: UInt64) -> Operation? {
        guard let operation = operations[epoch], operation.waiting.isEmpty else { return nil }
        operations[epoch] = nil
        return operation
    }

    func workersAwaited(atFence epoch: UInt64) -> Set<Int> { operations[epoch]?.waiting ?? [] }

    /// Drops the replies to a closed connection; its calls take effect.
    mutating func dropReplies(to connection: ConnectionID) {
        for (epoch, operation) in operations where operation.reply.connection == connection {
            operations[epoch]?.reply = .none
        }
    }

    /// Keeps operations of a closed room from affecting a later room of the same name.
    mutating func detach(_ epochs: [UInt64]) {
        for epoch in epochs { operations[epoch]?.process = nil }
    }
}
