import Contract
import JSON
import RTP
import Rooms
import WorkerInterface

// Calls of a room: applied, committed as an operation, and answered.

extension ControlPlane {
    func entry(_ room: RoomID) throws(IPCError) -> RoomEntry {
        guard let entry = rooms[room] else { throw .noSuchRoom(room) }
        return entry
    }

    /// Reads or changes a room's entry in place.
    mutating func withEntry<Result>(
        _ room: RoomID,
        _ body: (inout RoomEntry) throws(IPCError) -> Result
    ) throws(IPCError) -> Result {
        guard let result = try rooms.entries.withValue(of: room.rawValue, body) else {
            throw .noSuchRoom(room)
        }
        return result
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
        let outcome: Room.Outcome?
        do throws(CallError) {
            outcome = try rooms.entries[room.rawValue]?.room.apply(call, &shared)
        } catch {
            throw IPCError(error)
        }
        guard let outcome else { throw .noSuchRoom(room) }
        return outcome
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
        rooms.own(change.opened, name)
        noteOutputs(openedBy: change, in: name)
        rooms.counters.note(change.announcements)
        operation.freed = change.freed
        let shown = roomForApproved(by: change, name)
        operation.tell(
            change.announcements.flatMap { events($0, in: name, roomInfo: shown) }
        )
        // A closed room goes as a whole, callers' data included.
        let isClosed = rooms[name]?.room.isClosed == true
        if !isClosed { forgetWhoLeft(by: change, name) }
        operation.reply = reply(&self)
        if outcome.announcesFirst { operation.postpone(change.closing) }
        commit(operation, change.commands, in: name)
        rooms.noteDeadline(of: name)
        if isClosed { forget(name) }
    }

    /// Returns the room as it is told to participants that a change has admitted.
    ///
    /// It has nothing that only moderators hear of. `nil` if there are none or many, or if it is
    /// too long to be repeated for each.
    private func roomForApproved(by change: Room.Change, _ name: String) -> RoomInfo? {
        let approvals = change.announcements.count { announcement in
            if case .approved = announcement.news { true } else { false }
        }
        guard (1...Self.mostApprovedWithRoom).contains(approvals),
            var info = rooms[name]?.info(seq: journals.numbered(name))
        else { return nil }
        info.floor.requested = []
        info.counts.awaited = 0
        return JSON.encoded(info).count <= RoomEntry.shortInfoBytes ? info : nil
    }

    /// Participants admitted by one call up to whom each is told about the room.
    private static let mostApprovedWithRoom = 16

    /// Removes the callers' data of participants that a change has taken out of the room.
    private mutating func forgetWhoLeft(by change: Room.Change, _ name: String) {
        for case .left(let participant, let reason, _) in change.announcements.map(\.news)
        where reason != Room.EndReason.replaced {
            rooms.entries[name]?.forget(participant.id)
        }
        for case .denied(let participant, _, _) in change.announcements.map(\.news) {
            rooms.entries[name]?.forget(participant.id)
        }
    }

    /// Replies at once; for requests that are not ordered with a room's.
    mutating func answer(_ result: some Encodable, to caller: Caller) {
        let line = IPCReply.encoded(id: caller.request, result: result)
        output.append(.reply(caller.connection, line))
    }

    /// Replies with an error at once.
    mutating func refuse(_ error: IPCError, to caller: Caller) {
        let line = IPCReply.encoded(id: caller.request, error: error)
        output.append(.reply(caller.connection, line))
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

    /// Removes a room that has closed.
    private mutating func forget(_ name: String) {
        rooms.close(name)
        operations.detach(journals.underWay(name))
        journals.close(name)
        output.append(.log(.info, "room closed", [("room", name)]))
        tellIfDrained()
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
