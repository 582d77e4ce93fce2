import Contract
import RTP
import Rooms

extension Method {
    static let messageMethods = [
        Method(MessagePublish.self) { plane, params, caller, now throws(IPCError) in
            try plane.publish(params, for: caller, at: now)
        },
        Method(MessageSubscribe.self) { plane, params, caller, now throws(IPCError) in
            try plane.subscribeToTopic(params, for: caller, at: now)
        },
        Method(MessageUnsubscribe.self) { plane, params, caller, now throws(IPCError) in
            _ = try plane.member(params.participant, of: params.room)
            let name = params.room.rawValue
            plane.rooms.entries[name]?.messages.unsubscribe(params.participant, from: params.topic)
            plane.answer(Done(), to: caller, in: name, at: now)
        },
    ]
}

extension ControlPlane {
    fileprivate mutating func publish(
        _ params: MessagePublish.Params,
        for caller: Caller,
        at now: Instant
    ) throws(IPCError) {
        let entry = try entry(params.room)
        if let sender = params.from, try !member(sender, of: params.room).admitted {
            throw .notPermitted("who awaits approval can talk to nobody")
        }
        if params.persist == true, !entry.messages.hasRoom(for: params.topic) {
            throw .limitReached("messageTopics", setup.limits.messageTopics)
        }
        let name = params.room.rawValue
        guard
            let (message, audience) = rooms.entries[name]?.messages.publish(
                params,
                at: shared.unixTime
            )
        else { return }
        var operation = Operation(at: now)
        operation.reply = .written(
            caller.connection,
            IPCReply.encoded(id: caller.request, result: Done())
        )
        operation.events = [
            event(MessageReceived(message), to: .participants(audience), in: name)
        ]
        commit(operation, [:], in: name)
    }

    fileprivate mutating func subscribeToTopic(
        _ params: TopicOfParticipant,
        for caller: Caller,
        at now: Instant
    ) throws(IPCError) {
        let entry = try entry(params.room)
        guard try member(params.participant, of: params.room).admitted else {
            throw .notPermitted("who awaits approval hears nobody")
        }
        guard entry.messages.hasRoom(for: params.topic) else {
            throw .limitReached("messageTopics", setup.limits.messageTopics)
        }
        let name = params.room.rawValue
        let kept =
            rooms.entries[name]?.messages.subscribe(params.participant, to: params.topic) ?? []
        answer(MessageSubscribe.Result(messages: kept), to: caller, in: name, at: now)
    }

    fileprivate func member(
        _ participant: ParticipantID,
        of room: RoomID
    ) throws(IPCError) -> Room.Participant {
        let entry = try entry(room)
        do throws(CallError) {
            return try entry.room.participant(participant.rawValue)
        } catch {
            throw IPCError(error)
        }
    }
}
