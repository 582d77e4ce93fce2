/// Says what a subscription is sent of its stream's video, and why it is no more.
public enum SubscriptionExplain: IPCMethod {
    public static let name = "subscription.explain"

    public struct Params: Codable, Hashable, Sendable {
        public var room: RoomID
        public var subscription: SubscriptionID

        public init(room: RoomID, subscription: SubscriptionID) {
            self.room = room
            self.subscription = subscription
        }
    }

    public struct Result: Codable, Hashable, Sendable {
        /// What leaves for the viewer; `null`: no video.
        public var sent: SentLayer?
        /// What the publisher offers, live or not.
        public var offered: [LayerInfo]
        /// What the subscriber asked for.
        public var preference: LayerPreference
        /// What the viewer's path carries, in bits a second; absent while nobody knows.
        public var estimate: Int?
        /// What of that this subscription's video was given, in bits a second.
        public var share: Int
        /// The one thing that keeps it from more.
        public var limit: LayerLimitWord
        /// What must change for it to be sent more; absent where nothing keeps it from more.
        public var advice: String?
        /// The estimate from which on it would be sent more, in bits a second.
        public var needed: Int?
        /// When a layer is tried again to which a step up has failed of late, in Unix seconds.
        public var retryAt: Double?
        /// The last turns to other layers, 32 at most, oldest first.
        public var decisions: [LayerTurn]

        public init(
            sent: SentLayer?,
            offered: [LayerInfo],
            preference: LayerPreference,
            estimate: Int?,
            share: Int,
            limit: LayerLimitWord,
            advice: String? = nil,
            needed: Int? = nil,
            retryAt: Double? = nil,
            decisions: [LayerTurn] = []
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
        }

        public func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: CodingKeys.self)
            // Without video it says so.
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
        }
    }
}

/// A layer as it is being sent, by measure.
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

/// The most that a subscriber wants to be sent; what is absent is not bounded.
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

/// What keeps a viewer from a higher layer.
public enum LayerLimitWord: String, Codable, Hashable, Sendable, CaseIterable {
    case none, preference, role, bandwidth, publisher, muted, subscriber, codec, overload
}

/// One turn of a subscription to another layer.
public struct LayerTurn: Codable, Hashable, Sendable {
    /// Unix time, in seconds.
    public var time: Double
    /// `null`: no video.
    public var from: TurnLayer?
    public var to: TurnLayer?
    /// The limit that came, or the one that went.
    public var cause: LayerLimitWord

    public init(time: Double, from: TurnLayer?, to: TurnLayer?, cause: LayerLimitWord) {
        self.time = time
        self.from = from
        self.to = to
        self.cause = cause
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(time, forKey: .time)
        try container.encode(from, forKey: .from)
        try container.encode(to, forKey: .to)
        try container.encode(cause, forKey: .cause)
    }
}

/// The layer that a turn led from or to.
public struct TurnLayer: Codable, Hashable, Sendable {
    public var rid: String?
    public var width: Int
    public var height: Int
    /// Frames a second, to the next whole one.
    public var frameRate: Int

    public init(rid: String?, width: Int, height: Int, frameRate: Int) {
        self.rid = rid
        self.width = width
        self.height = height
        self.frameRate = frameRate
    }
}
