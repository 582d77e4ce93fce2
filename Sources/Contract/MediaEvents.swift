/// `stream.created`.
public struct StreamCreated: EventData {
    public static let event = "stream.created"
    public var stream: StreamID
    public var participant: ParticipantID
    public var streamInfo: StreamInfo
    public var by: ParticipantID?

    public init(_ streamInfo: StreamInfo, by: ParticipantID? = nil) {
        stream = streamInfo.stream
        participant = streamInfo.participant
        self.streamInfo = streamInfo
        self.by = by
    }
}

/// `stream.changed`: its media was switched off or on, or its codec or layers changed.
public struct StreamChanged: EventData {
    public static let event = "stream.changed"
    public var stream: StreamID
    public var participant: ParticipantID
    public var streamInfo: StreamInfo
    public var by: ParticipantID?

    public init(_ streamInfo: StreamInfo, by: ParticipantID? = nil) {
        stream = streamInfo.stream
        participant = streamInfo.participant
        self.streamInfo = streamInfo
        self.by = by
    }
}

/// `stream.destroyed`; its subscriptions end with it.
public struct StreamDestroyed: EventData {
    public static let event = "stream.destroyed"
    public var stream: StreamID
    public var participant: ParticipantID
    /// A word such as `unpublished`, `left` or `disconnected`.
    public var reason: String
    public var by: ParticipantID?

    public init(
        stream: StreamID,
        participant: ParticipantID,
        reason: String,
        by: ParticipantID? = nil
    ) {
        self.stream = stream
        self.participant = participant
        self.reason = reason
        self.by = by
    }
}

/// `stream.layersWanted`: encodings that have subscribers; the publisher may pause the others.
public struct StreamLayersWanted: EventData {
    public static let event = "stream.layersWanted"
    public var stream: StreamID
    public var participant: ParticipantID
    /// All encodings of the stream's video, as the offer listed them.
    public var layers: [WantedLayer]
    public var by: ParticipantID?

    public init(
        stream: StreamID,
        participant: ParticipantID,
        layers: [WantedLayer],
        by: ParticipantID? = nil
    ) {
        self.stream = stream
        self.participant = participant
        self.layers = layers
        self.by = by
    }
}

/// One encoding, and whether any subscriber needs it.
public struct WantedLayer: Codable, Hashable, Sendable {
    /// Absent without simulcast.
    public var rid: String?
    public var wanted: Bool

    public init(rid: String?, wanted: Bool) {
        self.rid = rid
        self.wanted = wanted
    }
}

/// Ids that every event about a subscription carries.
public struct SubscriptionReference: Codable, Hashable, Sendable {
    public var subscription: SubscriptionID
    public var participant: ParticipantID
    public var stream: StreamID

    public init(
        subscription: SubscriptionID,
        participant: ParticipantID,
        stream: StreamID
    ) {
        self.subscription = subscription
        self.participant = participant
        self.stream = stream
    }
}

/// `subscription.connected`: its first packet was sent; for video, a keyframe.
public struct SubscriptionConnected: EventData {
    public static let event = "subscription.connected"
    public var subscription: SubscriptionID
    public var participant: ParticipantID
    public var stream: StreamID
    /// The subscriber's m-lines that carry the stream.
    public var audioMid: Mid?
    public var videoMid: Mid?

    public init(
        _ reference: SubscriptionReference,
        audioMid: Mid? = nil,
        videoMid: Mid? = nil
    ) {
        subscription = reference.subscription
        participant = reference.participant
        stream = reference.stream
        self.audioMid = audioMid
        self.videoMid = videoMid
    }
}

/// `subscription.disconnected`: the stream's media stopped, temporarily or permanently.
public struct SubscriptionDisconnected: EventData {
    public static let event = "subscription.disconnected"
    public var subscription: SubscriptionID
    public var participant: ParticipantID
    public var stream: StreamID
    /// Whether the subscription has ended.
    public var final: Bool
    /// `publisher-reconnecting`, `transport-reconnecting`, `role`, `slots-ended` or
    /// `talkers-changed`.
    public var reason: String
    public var by: ParticipantID?

    public init(
        _ reference: SubscriptionReference,
        final: Bool,
        reason: String,
        by: ParticipantID? = nil
    ) {
        subscription = reference.subscription
        participant = reference.participant
        stream = reference.stream
        self.final = final
        self.reason = reason
        self.by = by
    }
}

/// `subscription.reconnected`: the stream's media arrives again.
public struct SubscriptionReconnected: EventData {
    public static let event = "subscription.reconnected"
    public var subscription: SubscriptionID
    public var participant: ParticipantID
    public var stream: StreamID

    public init(_ reference: SubscriptionReference) {
        subscription = reference.subscription
        participant = reference.participant
        stream = reference.stream
    }
}

/// Reason why a subscription's video was disabled or enabled.
public enum VideoReason: String, Codable, Hashable, Sendable, CaseIterable {
    case publisher, subscriber, quality, codec, muted, role, interrupted
}

/// `subscription.videoDisabled`.
public struct SubscriptionVideoDisabled: EventData {
    public static let event = "subscription.videoDisabled"
    public var subscription: SubscriptionID
    public var participant: ParticipantID
    public var stream: StreamID
    public var reason: VideoReason
    public var by: ParticipantID?

    public init(
        _ reference: SubscriptionReference,
        reason: VideoReason,
        by: ParticipantID? = nil
    ) {
        subscription = reference.subscription
        participant = reference.participant
        stream = reference.stream
        self.reason = reason
        self.by = by
    }
}

/// `subscription.videoEnabled`; its reason is that of the `videoDisabled` event that it ends.
public struct SubscriptionVideoEnabled: EventData {
    public static let event = "subscription.videoEnabled"
    public var subscription: SubscriptionID
    public var participant: ParticipantID
    public var stream: StreamID
    public var reason: VideoReason
    public var by: ParticipantID?

    public init(
        _ reference: SubscriptionReference,
        reason: VideoReason,
        by: ParticipantID? = nil
    ) {
        subscription = reference.subscription
        participant = reference.participant
        stream = reference.stream
        self.reason = reason
        self.by = by
    }
}

/// `subscription.layerChanged`: another layer of the stream is forwarded.
public struct SubscriptionLayerChanged: EventData {
    public static let event = "subscription.layerChanged"
    public var subscription: SubscriptionID
    public var participant: ParticipantID
    public var stream: StreamID
    /// The layer before and the layer now; absent for no video.
    public var previous: ForwardedLayer?
    public var current: ForwardedLayer?

    public init(
        _ reference: SubscriptionReference,
        previous: ForwardedLayer?,
        current: ForwardedLayer?
    ) {
        subscription = reference.subscription
        participant = reference.participant
        stream = reference.stream
        self.previous = previous
        self.current = current
    }
}

/// A layer that is forwarded, by its names.
public struct ForwardedLayer: Codable, Hashable, Sendable {
    /// Absent without simulcast.
    public var rid: String?
    /// Highest spatial layer that is forwarded, from 0; absent if the encoding has only one.
    public var spatial: Int?

    public init(rid: String?, spatial: Int? = nil) {
        self.rid = rid
        self.spatial = spatial
    }
}
