import Contract
import RTP
import Rooms
import WorkerInterface

/// Commitment of operations, and their completion when the workers have passed the fences.
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
        for event in operation.events { journals.save(finished(event), room) }
        journals.enqueue(add(operation, commands), room)
        // Nothing is awaited of a node that is lost, nor without commands.
        completeWhatIsDue(in: room)
    }

    /// Sends an operation's commands, each worker's with a fence behind them; returns its epoch.
    private mutating func add(_ operation: Operation, _ commands: [Int: [WorkerCommand]]) -> UInt64
    {
        var operation = operation
        let commands = route(commands, of: &operation)
        let awaited = commands.keys.filter { mayPass($0) }
        let epoch = operations.add(operation, awaiting: awaited)
        for (worker, commands) in commands.sorted(by: { $0.key < $1.key }) {
            awaitPlace(worker, epoch)
            tell(worker, commands + [.fence(epoch: epoch)])
        }
        return epoch
    }

    /// Records that a worker has executed all commands before a fence.
    mutating func fenced(_ epoch: UInt64, by worker: Int, at passed: Instant, _ packets: UInt64) {
        switch operations.pass(epoch, by: worker, at: passed, packets) {
        case .awaited: break
        case .complete:
            if let room = journals.room(of: epoch) { completeWhatIsDue(in: room) }
        case .unexpected:
            let fields = [("worker", "\(worker)")]
            output.append(.log(.warning, "a fence came back twice", fields))
        }
    }

    private mutating func completeWhatIsDue(in room: String) {
        while let epoch = journals.first(room), let operation = operations.takeComplete(epoch) {
            journals.dequeue(room)
            complete(operation, in: room)
        }
    }

    private mutating func complete(_ operation: Operation, in room: String) {
        var operation = operation
        settleTransports(of: &operation, in: room)
        if let process = operation.process { rooms.entries[room]?.room.finish(process) }
        let fence = Fence(
            time: clock.unixTime(at: operation.gatesClosed ?? operation.passed),
            packets: operation.packets,
            silent: operation.silent.isEmpty ? nil : operation.silent.sorted()
        )
        switch operation.reply {
        case .none: break
        case .written(let connection, let line): output.append(.reply(connection, line))
        case .dropped(let caller, let results):
            answer(ParticipantDrop.Result(results: results, fence: fence), to: caller)
        case .targets(let caller, let results):
            answer(TargetResults(results: results, fence: fence), to: caller)
        case .watched(let caller, let results):
            answer(SubscriptionSet.Result(results: results, fence: fence), to: caller)
        case .fenced(let caller): answer(Done(fence: fence), to: caller)
        case .recording(let caller, let tap):
            output.append(.reply(caller.connection, recordingReply(of: tap, to: caller)))
        }
        for event in operation.events.map(finished) {
            // Its line may say more than when it was numbered.
            journals.save(event, room)
            journals.append(event, room)
            output.append(.event(event.line, room: room, seq: event.seq))
        }
        for resource in operation.freed { release(resource) }
        if let sequel = operation.sequel {
            // The room's later operations wait behind it.
            let second = Operation(sequel, after: operation)
            journals.enqueueFirst(add(second, sequel.commands), room)
        }
        tellIfDrained()
        finishIfDone()
    }

    mutating func release(_ resource: Room.WorkerResource) {
        rooms.disown(resource)
        switch resource {
        case .transport(let worker, let id): shared.identifiers[worker].transports.release(id)
        case .publication(let worker, let id): shared.identifiers[worker].publications.release(id)
        case .slot(let worker, let id): shared.identifiers[worker].slots.release(id)
        // One of a room that goes on elsewhere ends without a word.
        case .tap(let id): roomOutputs.forwards[id] = nil
        case .subscription: break
        }
    }
}

// Checks for the simulator: entries left of ended rooms, and fences that are awaited.
extension ControlPlane {
    /// Workers whose fence an operation still awaits, in ascending order.
    package func workersAwaited(atFence epoch: UInt64) -> [Int] {
        operations.workersAwaited(atFence: epoch).sorted()
    }

    /// Entries left of ended rooms and calls, in words; empty if there are none.
    package var leakedObjects: [String] {
        var left = rooms.names.map { "room \($0)" }
        let tables = [
            ("operations", operations.count), ("owners", rooms.owners.count),
            ("reports", workerRequests.reportCount),
            ("explanations", workerRequests.explanationCount),
            ("qualities of transports", operations.qualityCount),
        ]
        left += tables.filter { $0.1 != 0 }.map { "\($0.1) \($0.0)" }
        for (index, identifiers) in shared.identifiers.enumerated() {
            let handles =
                identifiers.transports.used + identifiers.publications.used
                + identifiers.slots.used
            if handles > 0 { left.append("\(handles) handles of worker \(index)") }
        }
        return left
    }
}
