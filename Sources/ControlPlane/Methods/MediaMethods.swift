import Contract
import JSON
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
                transport: params.transport?.rawValue ?? Room.Transport.defaultName,
                by: params.by?.rawValue
            )
        },
        Method(TransportList.self) { plane, params, caller, now throws(IPCError) in
            let page = try plane.page(params)
            let result = EncodedPage(name: "transports", page: page)
            plane.answer(result, to: caller, in: params.room.rawValue, at: now)
        },
        Method(StreamList.self) { plane, params, caller, now throws(IPCError) in
            let page = try plane.withEntry(params.room) { entry throws(IPCError) in
                try entry.page(params)
            }
            let result = EncodedPage(name: "streams", page: page)
            plane.answer(result, to: caller, in: params.room.rawValue, at: now)
        },
        Method(StreamUpdate.self, in: \.room) {
            .updateStream(
                $0.stream.rawValue,
                audio: $0.audio,
                video: $0.video,
                by: $0.by?.rawValue
            )
        },
        Method(StreamUnpublish.self, in: \.room) {
            .unpublish($0.stream.rawValue, by: $0.by?.rawValue)
        },
        Method(SubscriptionAdd.self) { plane, params, caller, now throws(IPCError) in
            try plane.add(params, for: caller, at: now)
        },
        Method(SubscriptionUpdate.self, in: \.room) {
            .updateSubscription(
                $0.subscription.rawValue,
                Room.SubscriptionUpdate($0),
                by: $0.by?.rawValue
            )
        },
        Method(SubscriptionRemove.self, in: \.room) {
            .unsubscribe($0.subscription.rawValue, by: $0.by?.rawValue)
        },
        Method(SubscriptionSet.self) { plane, params, caller, now throws(IPCError) in
            try plane.set(params, for: caller, at: now)
        },
        Method(SubscriptionList.self) { plane, params, caller, now throws(IPCError) in
            let page = try plane.page(params)
            let result = EncodedPage(name: "subscriptions", page: page)
            plane.answer(result, to: caller, in: params.room.rawValue, at: now)
        },
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
        for (mid, attributes) in params.streams ?? [:] {
            offer.streams[mid.rawValue] = Room.StreamAttributesChange(attributes)
        }
        offer.audioFallback = Room.Setting(params.audioFallback) { $0 }
        offer.actor = params.by?.rawValue
        offer.destination = detour(of: offer.participant, in: params.room.rawValue)
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
        var wanted = SubscriptionSet.Wanted(stream: params.stream)
        wanted.audioMid = params.audioMid
        wanted.videoMid = params.videoMid
        wanted.preferredResolution = params.preferredResolution
        wanted.preferredFrameRate = params.preferredFrameRate
        wanted.priority = params.priority
        wanted.audioFallback = params.audioFallback
        var subscribe = Room.Subscribe(wanted, of: params.participant)
        subscribe.returnsExisting = params.ifExists == .return
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

extension Room.StreamAttributesChange {
    fileprivate init(_ attributes: StreamAttributes) {
        self.init()
        name = Room.Setting(attributes.name, \.rawValue)
        custom = Room.Setting(attributes.custom) {
            String(decoding: JSON.encoded($0), as: UTF8.self)
        }
        audioFallback = Room.Setting(attributes.audioFallback) { $0 }
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
        audioFallback = Room.Setting(params.audioFallback) { $0 }
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
