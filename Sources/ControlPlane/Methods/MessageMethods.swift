import Contract
import RTP
import Rooms

extension ControlPlane {
    mutating func carryMessages(
        _ request: IPCRequest,
        for caller: Caller,
        at now: Instant
    ) throws(IPCError) {
        switch request.method {
        case MessagePublish.name:
            try publish(request.params(MessagePublish.Params.self), for: caller, at: now)
        case MessageSubscribe.name:
            try subscribeToTopic(request.params(MessageSubscribe.Params.self), for: caller, at: now)
        case MessageUnsubscribe.name:
            let params = try request.params(MessageUnsubscribe.Params.self)
            _ = try member(params.participant, of: params.room)
            rooms[params.room.rawValue]?.messages.unsubscribe(
                params.participant,
                from: params.topic
            )
            answer(Done(), to: caller, in: params.room.rawValue, at: now)
        default:
            throw .noSuchMethod(request.method)
        }
    }

    private mutating func publish(
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
        guard let (message, audience) = rooms[name]?.messages.publish(params, at: shared.unixTime)
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

    private mutating func subscribeToTopic(
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
        let kept = rooms[name]?.messages.subscribe(params.participant, to: params.topic) ?? []
        answer(MessageSubscribe.Result(messages: kept), to: caller, in: name, at: now)
    }

    private func member(
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
