import Contract
import RTP
import Rooms
import WorkerInterface

extension ControlPlane {
    /// Dispatches a request to its method, or throws the error of a refusal.
    mutating func carryOut(
        _ request: IPCRequest,
        for caller: Caller,
        at now: Instant
    ) throws(IPCError) {
        switch request.method {
        case ServerInfo.name:
            _ = try request.params(ServerInfo.Params.self)
            answer(info, to: caller)
        case ServerStats.name:
            _ = try request.params(ServerStats.Params.self)
            report(.server, for: caller)
        case ServerDrain.name:
            try drain(request.params(ServerDrain.Params.self), for: caller, at: now)
        case EventsSubscribe.name:
            try subscribe(request.params(EventsSubscribe.Params.self), for: caller)
        case RoomCreate.name:
            try create(request.params(RoomCreate.Params.self), for: caller, at: now)
        case RoomGet.name:
            let name = try entry(request.params(RoomGet.Params.self).room).room.name
            answer(show(name), to: caller, in: name, at: now)
        case RoomList.name:
            _ = try request.params(RoomList.Params.self)
            answer(EncodedRooms(rooms: rooms.keys.sorted().compactMap { show($0) }), to: caller)
        case RoomClose.name:
            try close(request.params(RoomClose.Params.self), for: caller, at: now)
        case StatsGet.name:
            try stats(request.params(StatsGet.Params.self), for: caller)
        case SubscriptionExplain.name:
            try explain(request.params(SubscriptionExplain.Params.self), for: caller, at: now)
        default:
            try carryOutInRoom(request, for: caller, at: now)
        }
    }

    private mutating func carryOutInRoom(
        _ request: IPCRequest,
        for caller: Caller,
        at now: Instant
    ) throws(IPCError) {
        switch request.method {
        case ParticipantJoin.name:
            try join(request.params(ParticipantJoin.Params.self), for: caller, at: now)
        case ParticipantLeave.name:
            let params = try request.params(ParticipantLeave.Params.self)
            let leave = Room.Call.leave(participant: params.participant.rawValue)
            try call(leave, in: params.room, for: caller, at: now)
            rooms[params.room.rawValue]?.forget(params.participant.rawValue)
        case TransportOffer.name:
            try offer(request.params(TransportOffer.Params.self), for: caller, at: now)
        case TransportClose.name:
            try close(request.params(TransportClose.Params.self), for: caller, at: now)
        case StreamList.name:
            let entry = try entry(request.params(StreamList.Params.self).room)
            let streams = entry.room.streamsInOrder.map(StreamInfo.init)
            answer(
                StreamList.Result(streams: streams),
                to: caller,
                in: entry.room.name,
                at: now
            )
        case StreamUpdate.name:
            try update(request.params(StreamUpdate.Params.self), for: caller, at: now)
        case StreamUnpublish.name:
            let params = try request.params(StreamUnpublish.Params.self)
            let unpublish = Room.Call.unpublish(
                params.stream.rawValue,
                by: params.by?.rawValue
            )
            try call(unpublish, in: params.room, for: caller, at: now)
        case SubscriptionAdd.name:
            try add(request.params(SubscriptionAdd.Params.self), for: caller, at: now)
        case SubscriptionUpdate.name:
            try update(request.params(SubscriptionUpdate.Params.self), for: caller, at: now)
        case SubscriptionRemove.name:
            let params = try request.params(SubscriptionRemove.Params.self)
            try call(
                .unsubscribe(params.subscription.rawValue),
                in: params.room,
                for: caller,
                at: now
            )
        case TalkersSubscribe.name:
            try follow(request.params(TalkersSubscribe.Params.self), for: caller, at: now)
        default:
            try moderateRoom(request, for: caller, at: now)
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

    private mutating func close(
        _ params: RoomClose.Params,
        for caller: Caller,
        at now: Instant
    ) throws(IPCError) {
        let reason = params.reason?.rawValue ?? "closed"
        let close = Room.Call.close(by: params.by?.rawValue, reason: reason)
        try call(close, in: params.room, for: caller, at: now)
    }

    private mutating func join(
        _ params: ParticipantJoin.Params,
        for caller: Caller,
        at now: Instant
    ) throws(IPCError) {
        let id = params.participant.rawValue
        var join = Room.Join(participant: id)
        join.name = params.name?.rawValue
        join.role = params.role?.rawValue
        join.mode = params.mode.map { Room.Mode($0.mode) }
        join.vocabulary = params.mode.map { $0.isOldName ? .old : .current }
        let outcome = try apply(.join(join), in: params.room)
        if let custom = params.custom {
            rooms[params.room.rawValue]?.keep(custom.value, for: id)
        }
        conclude(outcome, in: params.room.rawValue, at: now) { plane in
            guard let room = plane.show(params.room.rawValue) else { return .none }
            let state: JoinState = outcome.result == .awaited ? .awaited : .joined
            let result = EncodedJoin(state: state, room: room)
            return .written(
                caller.connection,
                IPCReply.encoded(id: caller.request, result: result)
            )
        }
    }

    private mutating func offer(
        _ params: TransportOffer.Params,
        for caller: Caller,
        at now: Instant
    ) throws(IPCError) {
        var offer = Room.Offer(participant: params.participant.rawValue, sdp: params.sdp)
        if let transport = params.transport { offer.transport = transport.rawValue }
        for (mid, source) in params.sources ?? [:] {
            offer.sources[mid.rawValue] = MediaSource(source)
        }
        offer.audioFallback = params.audioFallback
        try call(.offer(offer), in: params.room, for: caller, at: now) { outcome, _ in
            guard case .answered(let answered) = outcome.result else { return nil }
            return IPCReply.encoded(
                id: caller.request,
                result: TransportOffer.Result(answered)
            )
        }
    }

    private mutating func close(
        _ params: TransportClose.Params,
        for caller: Caller,
        at now: Instant
    ) throws(IPCError) {
        let name = params.transport?.rawValue ?? Room.Transport.defaultName
        let close = Room.Call.closeTransport(
            participant: params.participant.rawValue,
            transport: name
        )
        try call(close, in: params.room, for: caller, at: now)
    }

    private mutating func update(
        _ params: StreamUpdate.Params,
        for caller: Caller,
        at now: Instant
    ) throws(IPCError) {
        let update = Room.Call.updateStream(
            params.stream.rawValue,
            audio: params.audio,
            video: params.video
        )
        try call(update, in: params.room, for: caller, at: now)
    }

    private mutating func add(
        _ params: SubscriptionAdd.Params,
        for caller: Caller,
        at now: Instant
    ) throws(IPCError) {
        var subscribe = Room.Subscribe(
            participant: params.participant.rawValue,
            stream: params.stream.rawValue
        )
        subscribe.audioMid = params.audioMid?.rawValue
        subscribe.videoMid = params.videoMid?.rawValue
        subscribe.preferences.width = params.preferredResolution?.width
        subscribe.preferences.height = params.preferredResolution?.height
        subscribe.preferences.frameRate = params.preferredFrameRate?.framesPerSecond
        subscribe.preferences.priority = params.priority?.rawValue
        subscribe.preferences.audioFallback = params.audioFallback
        try call(.subscribe(subscribe), in: params.room, for: caller, at: now) { outcome, plane in
            guard case .subscribed(let number) = outcome.result,
                let subscription = plane.rooms[params.room.rawValue]?.room.subscriptions[number]
            else { return nil }
            return IPCReply.encoded(
                id: caller.request,
                result: SubscriptionAdd.Result(subscription)
            )
        }
    }

    private mutating func update(
        _ params: SubscriptionUpdate.Params,
        for caller: Caller,
        at now: Instant
    ) throws(IPCError) {
        var update = Room.SubscriptionUpdate()
        update.stream = params.stream?.rawValue
        update.audio = params.audio
        update.video = params.video
        update.size = Room.Setting(params.preferredResolution) {
            Room.Size(width: $0.width, height: $0.height)
        }
        update.frameRate = Room.Setting(params.preferredFrameRate, \.framesPerSecond)
        update.priority = Room.Setting(params.priority, \.rawValue)
        try call(
            .updateSubscription(params.subscription.rawValue, update),
            in: params.room,
            for: caller,
            at: now
        )
    }

    private mutating func follow(
        _ params: TalkersSubscribe.Params,
        for caller: Caller,
        at now: Instant
    ) throws(IPCError) {
        var follow = Room.Follow(
            participant: params.participant.rawValue,
            audioMids: params.audioMids.map(\.rawValue),
            videoMids: params.videoMids.map(\.rawValue)
        )
        follow.preferences.width = params.preferredResolution?.width
        follow.preferences.height = params.preferredResolution?.height
        follow.preferences.frameRate = params.preferredFrameRate?.framesPerSecond
        try call(.follow(follow), in: params.room, for: caller, at: now)
    }
}
