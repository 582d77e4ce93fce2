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
    package var waiting: Set<Int> = []
    /// Room operation that is pending until then.
    var process: Room.PendingOperation?
    /// Time at which the last worker passed the fence.
    var passed: Instant
    /// Packets forwarded under the revoked right, summed over the workers.
    var packets: UInt64 = 0

    init(at now: Instant) { passed = now }
}

extension ControlPlane {
    /// Sends an operation's commands; its reply and events follow when they have taken effect.
    ///
    /// Operations of one room complete in the order in which they were judged, which keeps events
    /// in `seq` order. Operations of different rooms may overtake one another.
    mutating func commit(
        _ operation: Operation,
        _ commands: [Int: [WorkerCommand]],
        in room: String
    ) {
        var operation = operation
        lastEpoch += 1
        for worker in commands.keys.sorted() {
            operation.waiting.insert(worker)
            output.append(
                .commands(
                    worker: worker,
                    (commands[worker] ?? []) + [.fence(epoch: lastEpoch)]
                )
            )
        }
        operations[lastEpoch] = operation
        journals.enqueue(lastEpoch, room)
        if operation.waiting.isEmpty { completeWhatIsDue(in: room) }
    }

    /// Records that a worker has executed all commands before a fence.
    mutating func fenced(_ epoch: UInt64, by worker: Int, at passed: Instant, _ packets: UInt64) {
        guard var operation = operations[epoch], operation.waiting.remove(worker) != nil else {
            output.append(
                .log(.warning, "a fence came back twice", [("worker", "\(worker)")])
            )
            return
        }
        operation.passed = max(operation.passed, passed)
        operation.packets &+= packets
        operations[epoch] = operation
        guard operation.waiting.isEmpty, let room = journals.room(of: epoch) else { return }
        completeWhatIsDue(in: room)
    }

    private mutating func completeWhatIsDue(in room: String) {
        while let epoch = journals.first(room), let operation = operations[epoch],
            operation.waiting.isEmpty
        {
            operations[epoch] = nil
            journals.dequeue(room)
            complete(operation, in: room)
        }
    }

    private mutating func complete(_ operation: Operation, in room: String) {
        if let process = operation.process { rooms[room]?.room.finish(process) }
        let fence = Fence(
            time: clock.unixTime(at: operation.passed),
            packets: operation.packets
        )
        switch operation.reply {
        case .none: break
        case .written(let connection, let line): output.append(.reply(connection, line))
        case .dropped(let caller, let results):
            let result = ParticipantDrop.Result(results: results, fence: fence)
            output.append(
                .reply(caller.connection, IPCReply.encoded(id: caller.request, result: result))
            )
        case .fenced(let caller):
            let line = IPCReply.encoded(id: caller.request, result: Done(fence: fence))
            output.append(.reply(caller.connection, line))
        case .recording(let caller, let tap):
            output.append(.reply(caller.connection, recordingReply(of: tap, to: caller)))
        }
        for event in operation.events.map(finished) {
            journals.append(event, room)
            output.append(.event(room: room, seq: event.seq, line: event.line))
        }
        for place in operation.freed { release(place) }
        tellIfDrained()
        finishIfDone()
    }

    private mutating func release(_ place: Room.WorkerResource) {
        owners[place] = nil
        switch place {
        case .transport(let worker, let id):
            transportChanges &+= 1
            shared.identifiers[worker].transports.release(id)
        case .publication(let worker, let id): shared.identifiers[worker].publications.release(id)
        case .slot(let worker, let id): shared.identifiers[worker].slots.release(id)
        case .subscription, .tap: break
        }
    }
}
