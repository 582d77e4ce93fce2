import Contract
import JSON
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
        Method(MessageTopics.self) { plane, params, caller, now throws(IPCError) in
            if let participant = params.participant {
                _ = try plane.member(participant, of: params.room)
            }
            let messages = try plane.entry(params.room).messages
            var page = Page(limit: params.limit)
            for topic in messages.topics(of: params.participant, after: params.after?.rawValue) {
                guard page.append(JSON.encoded(topic), cursor: topic.topic.rawValue) else { break }
            }
            let result = EncodedPage(name: "topics", page: page)
            plane.answer(result, to: caller, in: params.room.rawValue, at: now)
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
        // A copy of the whole entry would make its messages move at each call.
        let members = try entry(params.room).room.participants
        let name = params.room.rawValue
        if let sender = params.from, try !member(sender, of: params.room).admitted {
            throw IPCError(.awaitsApproval(4010, sender.rawValue))
        }
        if let unknown = params.to?.first(where: { members[$0.rawValue] == nil }) {
            _ = try member(unknown, of: params.room)
        }
        try checkIsOpenForMessages(params.room)
        if params.persist == true,
            rooms.entries[name]?.messages.hasRoom(for: params.topic) == false
        {
            throw .limitReached("messageTopics", setup.limits.messageTopics)
        }
        guard
            let (message, audience) = rooms.entries[name]?.messages.publish(
                params,
                among: members,
                at: shared.unixTime
            )
        else { return }
        var operation = Operation(at: now)
        operation.reply = .written(
            caller.connection,
            IPCReply.encoded(id: caller.request, result: Done())
        )
        operation.tell(events(MessageReceived(message), to: audience, in: name))
        commit(operation, [:], in: name)
    }

    fileprivate mutating func subscribeToTopic(
        _ params: MessageSubscribe.Params,
        for caller: Caller,
        at now: Instant
    ) throws(IPCError) {
        let entry = try entry(params.room)
        guard try member(params.participant, of: params.room).admitted else {
            throw IPCError(.awaitsApproval(4010, params.participant.rawValue))
        }
        try checkIsOpenForMessages(params.room)
        guard entry.messages.hasRoom(for: params.topic) else {
            throw .limitReached("messageTopics", setup.limits.messageTopics)
        }
        _ = try Page.cursor(params.after)
        let name = params.room.rawValue
        let kept =
            rooms.entries[name]?.messages.subscribe(params.participant, to: params.topic) ?? []
        let page = try Page.numbered(
            kept,
            by: \.number,
            limit: params.limit,
            after: params.after
        ) { JSON.encoded($0) }
        answer(EncodedPage(name: "messages", page: page), to: caller, in: name, at: now)
    }

    private func checkIsOpenForMessages(_ room: RoomID) throws(IPCError) {
        let room = try entry(room).room
        do throws(CallError) { try room.checkIsOpenForMessages() } catch { throw IPCError(error) }
    }

    func member(
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
