import Contract
import RTP
import Rooms
import WorkerInterface

// Methods of transports, streams, subscriptions and active speakers.

extension Method {
    static let mediaMethods = [
        Method(TransportOffer.self) { plane, params, caller, now throws(IPCError) in
            try plane.offer(params, for: caller, at: now)
        },
        Method(TransportClose.self, in: \.room) { params in
            .closeTransport(
                participant: params.participant.rawValue,
                transport: params.transport?.rawValue ?? Room.Transport.defaultName
            )
        },
        Method(StreamList.self) { plane, params, caller, now throws(IPCError) in
            let room = try plane.entry(params.room).room
            let streams = room.streamsInOrder.map(StreamInfo.init)
            let result = StreamList.Result(streams: streams)
            plane.answer(result, to: caller, in: room.name, at: now)
        },
        Method(StreamUpdate.self, in: \.room) {
            .updateStream($0.stream.rawValue, audio: $0.audio, video: $0.video)
        },
        Method(StreamUnpublish.self, in: \.room) {
            .unpublish($0.stream.rawValue, by: $0.by?.rawValue)
        },
        Method(SubscriptionAdd.self) { plane, params, caller, now throws(IPCError) in
            try plane.add(params, for: caller, at: now)
        },
        Method(SubscriptionUpdate.self, in: \.room) {
            .updateSubscription($0.subscription.rawValue, Room.SubscriptionUpdate($0))
        },
        Method(SubscriptionRemove.self, in: \.room) { .unsubscribe($0.subscription.rawValue) },
        Method(TalkersSubscribe.self, in: \.room) { .follow(Room.Follow($0)) },
    ]
}

extension ControlPlane {
    fileprivate mutating func offer(
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

    fileprivate mutating func add(
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
                let subscription = plane.rooms[params.room]?.room.subscriptions[number]
            else { return nil }
            return IPCReply.encoded(
                id: caller.request,
                result: SubscriptionAdd.Result(subscription)
            )
        }
    }
}

extension Room.SubscriptionUpdate {
    fileprivate init(_ params: SubscriptionUpdate.Params) {
        self.init()
        stream = params.stream?.rawValue
        audio = params.audio
        video = params.video
        size = Room.Setting(params.preferredResolution) {
            Room.Size(width: $0.width, height: $0.height)
        }
        frameRate = Room.Setting(params.preferredFrameRate, \.framesPerSecond)
        priority = Room.Setting(params.priority, \.rawValue)
    }
}

extension Room.Follow {
    fileprivate init(_ params: TalkersSubscribe.Params) {
        self.init(
            participant: params.participant.rawValue,
            audioMids: params.audioMids.map(\.rawValue),
            videoMids: params.videoMids.map(\.rawValue)
        )
        preferences.width = params.preferredResolution?.width
        preferences.height = params.preferredResolution?.height
        preferences.frameRate = params.preferredFrameRate?.framesPerSecond
    }
}
