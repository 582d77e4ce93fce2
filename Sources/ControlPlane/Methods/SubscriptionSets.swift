import Contract
import JSON
import RTP
import Rooms

// The whole of a participant's subscriptions: set in one call, and listed.

extension ControlPlane {
    mutating func set(
        _ params: SubscriptionSet.Params,
        for caller: Caller,
        at now: Instant
    ) throws(IPCError) {
        let wanted = params.subscriptions.map { Room.Subscribe($0, of: params.participant) }
        let set = Room.Call.setSubscriptions(
            of: params.participant.rawValue,
            to: wanted,
            by: params.by?.rawValue
        )
        let outcome = try apply(set, in: params.room)
        guard case .each(let results) = outcome.result else { return }
        conclude(outcome, in: params.room.rawValue, at: now) { plane in
            let room = plane.rooms[params.room]?.room
            let watched = zip(wanted, results).map { call, result in
                SubscriptionSet.Watched(StreamID(call.stream), result, in: room)
            }
            return .watched(caller, watched)
        }
    }

    /// Returns a page of a participant's subscriptions; a cursor is a subscription's number.
    func page(_ params: SubscriptionList.Params) throws(IPCError) -> Page {
        let room = try entry(params.room).room
        let participant = try member(params.participant, of: params.room)
        return try Page.numbered(
            participant.subscriptions.compactMap { room.subscriptions[$0] },
            by: \.number,
            limit: params.limit,
            after: params.after
        ) { JSON.encoded(SubscriptionInfo($0)) }
    }
}

extension SubscriptionSet.Watched {
    fileprivate init(
        _ stream: StreamID,
        _ result: Result<Room.Result, CallError>,
        in room: Room?
    ) {
        self.init(stream: stream)
        switch result {
        case .failure(let refusal): error = IPCError(refusal)
        case .success(.subscribed(let number)):
            guard let found = room?.subscriptions[number] else { return }
            subscription = SubscriptionID(found.id)
            audioMid = found.audioSlot.flatMap { Mid(rawValue: $0.mid) }
            videoMid = found.videoSlot.flatMap { Mid(rawValue: $0.mid) }
        case .success: break
        }
    }
}

extension Room.Subscribe {
    init(_ wanted: SubscriptionSet.Wanted, of participant: ParticipantID) {
        self.init(participant: participant.rawValue, stream: wanted.stream.rawValue)
        audioMid = wanted.audioMid?.rawValue
        videoMid = wanted.videoMid?.rawValue
        preferences.width = wanted.preferredResolution?.width
        preferences.height = wanted.preferredResolution?.height
        preferences.frameRate = wanted.preferredFrameRate?.framesPerSecond
        preferences.priority = wanted.priority?.rawValue
        preferences.audioFallback = wanted.audioFallback
    }
}

extension SubscriptionInfo {
    fileprivate init(_ subscription: Room.Subscription) {
        self.init(
            subscription: SubscriptionID(subscription.id),
            participant: ParticipantID(subscription.participant),
            stream: StreamID(subscription.stream),
            audio: subscription.audioOn,
            video: subscription.videoOn,
            followsTalkers: subscription.follows
        )
        audioMid = subscription.audioSlot.flatMap { Mid(rawValue: $0.mid) }
        videoMid = subscription.videoSlot.flatMap { Mid(rawValue: $0.mid) }
        let preferences = subscription.preferences
        if let width = preferences.width, let height = preferences.height {
            preferredResolution = Resolution(width: width, height: height)
        }
        preferredFrameRate = preferences.frameRate.map { FrameRate($0) }
        priority = preferences.priority.map { Priority($0) }
        audioFallback = preferences.audioFallback
    }
}
