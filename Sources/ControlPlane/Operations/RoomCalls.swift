import Contract
import JSON
import RTP
import Rooms
import WorkerInterface

// Calls of a room: applied, committed as an operation, and answered.

extension ControlPlane {
    func entry(_ room: RoomID) throws(IPCError) -> RoomEntry {
        guard let entry = rooms[room.rawValue] else { throw .noSuchRoom(room) }
        return entry
    }

    /// Applies a call to its room and replies when it has taken effect.
    ///
    /// `result` makes the reply from the room after the call. If it returns `nil`, the reply is
    /// `{}`, with the fence's figures if the call revoked a right.
    mutating func call(
        _ call: Room.Call,
        in room: RoomID,
        for caller: Caller,
        at now: Instant,
        result: (Room.Outcome, Self) -> [UInt8]? = { _, _ in nil }
    ) throws(IPCError) {
        let outcome = try apply(call, in: room)
        conclude(outcome, in: room.rawValue, at: now) { plane in
            if let line = result(outcome, plane) { return .written(caller.connection, line) }
            if outcome.isFenced { return .fenced(caller) }
            return .written(
                caller.connection,
                IPCReply.encoded(id: caller.request, result: Done())
            )
        }
    }

    mutating func apply(
        _ call: Room.Call,
        in room: RoomID
    ) throws(IPCError) -> Room.Outcome {
        guard rooms[room.rawValue] != nil else { throw .noSuchRoom(room) }
        do throws(CallError) {
            // In place: copying the room would cost time in proportion to its size.
            guard let outcome = try rooms[room.rawValue]?.room.apply(call, &shared) else {
                throw CallError(code: -32603, reason: "internal-error", message: "the room is gone")
            }
            return outcome
        } catch {
            throw IPCError(error)
        }
    }

    /// Numbers and encodes the events of an outcome, and commits it as an operation.
    mutating func conclude(
        _ outcome: Room.Outcome,
        in name: String,
        at now: Instant,
        reply: (inout Self) -> Operation.Reply = { _ in .none }
    ) {
        let change = outcome.change
        var operation = Operation(at: now)
        operation.process = outcome.process
        for place in change.opened { owners[place] = name }
        note(outcome, in: name)
        operation.freed = change.freed
        operation.events = change.announcements.map { event($0, in: name) }
        operation.reply = reply(&self)
        commit(operation, change.commands, in: name)
        noteDeadline(of: name)
        if let room = rooms[name]?.room, room.isClosed {
            roomCounts[room.worker] -= 1
            rooms[name] = nil
            // Pending operations must not affect a later room of the same name.
            for epoch in journals.underWay(name) { operations[epoch]?.process = nil }
            journals.close(name)
            output.append(.log(.info, "room closed", [("room", name)]))
            tellIfDrained()
        }
    }

    /// Replies at once; for requests that are not ordered with a room's.
    mutating func answer(_ result: some Encodable, to caller: Caller) {
        output.append(
            .reply(caller.connection, IPCReply.encoded(id: caller.request, result: result))
        )
    }

    /// Replies in order, after the room's earlier calls.
    mutating func answer(
        _ result: some Encodable,
        to caller: Caller,
        in room: String,
        at now: Instant
    ) {
        var operation = Operation(at: now)
        operation.reply = .written(
            caller.connection,
            IPCReply.encoded(id: caller.request, result: result)
        )
        commit(operation, [:], in: room)
    }

    mutating func closeAtShutdown(_ name: String, at now: Instant) {
        let reason = Room.EndReason.shutdown
        guard let outcome = try? apply(.close(by: nil, reason: reason), in: RoomID(name)) else {
            return
        }
        conclude(outcome, in: name, at: now)
    }
}

extension IPCError {
    init(_ refusal: CallError) {
        self.init(
            code: refusal.code,
            message: refusal.message,
            reason: refusal.reason,
            details: refusal.details.mapValues { detail in
                switch detail {
                case .text(let text): .string(text)
                case .number(let number): .integer(Int64(number))
                }
            }
        )
    }
}
