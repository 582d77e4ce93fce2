/// Explains the video layer that a subscription receives, and what limits it.
public enum SubscriptionExplain: IPCMethod {
    public static let name = "subscription.explain"

    public struct Params: Codable, Hashable, Sendable {
        public var room: RoomID
        public var subscription: SubscriptionID
        public var by: ParticipantID?

        public init(room: RoomID, subscription: SubscriptionID, by: ParticipantID? = nil) {
            self.room = room
            self.subscription = subscription
            self.by = by
        }
    }

    public struct Result: Codable, Hashable, Sendable {
        /// Layer that is sent to the subscriber; `null` for no video.
        public var sent: SentLayer?
        /// Layers of the publisher's video, whether active or not.
        public var offered: [LayerInfo]
        /// Limits and priority that the subscriber asked for.
        public var preference: LayerPreference
        /// Bitrate the subscriber's path can carry, in bits a second; absent while unknown.
        public var estimate: Int?
        /// Part of the estimate allocated to this subscription's video, in bits a second.
        public var share: Int
        /// The one constraint that prevents a higher layer.
        public var limit: LayerLimitReason
        /// Change that would allow a higher layer; absent if nothing limits it.
        public var advice: String?
        /// Lowest estimate at which a higher layer would be sent, in bits a second.
        public var needed: Int?
        /// Time of the next try of a layer that recently failed, in Unix seconds.
        public var retryAt: Double?
        /// Last layer switches, 32 at most, oldest first.
        public var decisions: [LayerSwitch]
        /// Freezes of the video; absent without video.
        public var freezes: SubscriptionFreezes?

        public init(
            sent: SentLayer?,
            offered: [LayerInfo],
            preference: LayerPreference,
            estimate: Int?,
            share: Int,
            limit: LayerLimitReason,
            advice: String? = nil,
            needed: Int? = nil,
            retryAt: Double? = nil,
            decisions: [LayerSwitch] = [],
            freezes: SubscriptionFreezes? = nil
        ) {
            self.sent = sent
            self.offered = offered
            self.preference = preference
            self.estimate = estimate
            self.share = share
            self.limit = limit
            self.advice = advice
            self.needed = needed
            self.retryAt = retryAt
            self.decisions = decisions
            self.freezes = freezes
        }

        public func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: CodingKeys.self)
            // `sent` is written as null if there is no video.
            try container.encode(sent, forKey: .sent)
            try container.encode(offered, forKey: .offered)
            try container.encode(preference, forKey: .preference)
            try container.encodeIfPresent(estimate, forKey: .estimate)
            try container.encode(share, forKey: .share)
            try container.encode(limit, forKey: .limit)
            try container.encodeIfPresent(advice, forKey: .advice)
            try container.encodeIfPresent(needed, forKey: .needed)
            try container.encodeIfPresent(retryAt, forKey: .retryAt)
            try container.encode(decisions, forKey: .decisions)
            try container.encodeIfPresent(freezes, forKey: .freezes)
        }
    }
}

/// Measured properties of the layer that is being sent.
public struct SentLayer: Codable, Hashable, Sendable {
    public var rid: String?
    /// Pixels; 0 while unknown.
    public var width: Int
    public var height: Int
    /// Frames a second.
    public var frameRate: Double
    /// Bits a second.
    public var bitrate: Int

    public init(rid: String?, width: Int, height: Int, frameRate: Double, bitrate: Int) {
        self.rid = rid
        self.width = width
        self.height = height
        self.frameRate = frameRate
        self.bitrate = bitrate
    }
}

/// Upper bounds and priority that a subscriber asked for; absent members do not apply.
public struct LayerPreference: Codable, Hashable, Sendable {
    public var resolution: Resolution?
    public var frameRate: Double?
    public var priority: Int?

    public init(resolution: Resolution? = nil, frameRate: Double? = nil, priority: Int? = nil) {
        self.resolution = resolution
        self.frameRate = frameRate
        self.priority = priority
    }
}

/// Constraint that keeps a subscriber from a higher layer.
public enum LayerLimitReason: String, Codable, Hashable, Sendable, CaseIterable {
    case none, preference, role, bandwidth, publisher, muted, subscriber, codec, overload
    /// The viewer waits to be let in.
    case approval
    /// The link from the publisher's node to the viewer's does not carry more.
    case link
}

/// One layer switch of a subscription.
public struct LayerSwitch: Codable, Hashable, Sendable {
    /// Unix time, in seconds.
    public var time: Double
    /// `null` for no video.
    public var previous: SwitchedLayer?
    public var current: SwitchedLayer?
    /// The limit that began, or the one that ended.
    public var cause: LayerLimitReason

    public init(
        time: Double,
        previous: SwitchedLayer?,
        current: SwitchedLayer?,
        cause: LayerLimitReason
    ) {
        self.time = time
        self.previous = previous
        self.current = current
        self.cause = cause
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(time, forKey: .time)
        try container.encode(previous, forKey: .previous)
        try container.encode(current, forKey: .current)
        try container.encode(cause, forKey: .cause)
    }
}

/// A layer before or after a switch.
public struct SwitchedLayer: Codable, Hashable, Sendable {
    public var rid: String?
    public var width: Int
    public var height: Int
    /// Frames a second, rounded to a whole number.
    public var frameRate: Int

    public init(rid: String?, width: Int, height: Int, frameRate: Int) {
        self.rid = rid
        self.width = width
        self.height = height
        self.frameRate = frameRate
    }
}
