/// Part of the way from the publisher's camera to the viewer's screen in which a picture froze.
public enum FreezeHopName: String, Codable, Hashable, Sendable, CaseIterable {
    /// Packets of the publisher were lost or late.
    case publisherUplink = "publisher-uplink"
    /// The publisher sent no frame, or no keyframe although asked.
    case publisherEncoder = "publisher-encoder"
    /// Packets waited or were dropped in sfud.
    case sfu
    /// Packets to the viewer were lost or late, or its path carries less than the lowest layer.
    case viewerDownlink = "viewer-downlink"
    /// All packets arrived in time, and the viewer still asked for keyframes.
    case viewerDecoder = "viewer-decoder"
}

/// Freezes that are due to one hop.
public struct HopFreezes: Codable, Hashable, Sendable {
    public var hop: FreezeHopName
    public var count: Int
    public var seconds: Double

    public init(hop: FreezeHopName, count: Int, seconds: Double) {
        self.hop = hop
        self.count = count
        self.seconds = seconds
    }
}

/// Freezes of a subscription's video since it began.
public struct SubscriptionFreezes: Codable, Hashable, Sendable {
    /// Freezes that have ended, and their length.
    public var count = 0
    public var seconds = 0.0
    /// The same by hop, without hops that have none.
    public var hops: [HopFreezes] = []
    /// Last freezes, 16 at most, oldest first; the last one may still be going on.
    public var recent: [FreezeInfo] = []

    public init() {}
}

/// One freeze of a picture: no new frame reached the viewer.
public struct FreezeInfo: Codable, Hashable, Sendable {
    /// Unix time of its beginning, in seconds.
    public var time: Double
    /// Its length, or that so far.
    public var seconds: Double
    public var hop: FreezeHopName
    /// Evidence for the hop, in words.
    public var reason: String
    /// Whether it is still going on.
    public var ongoing: Bool

    public init(time: Double, seconds: Double, hop: FreezeHopName, reason: String, ongoing: Bool) {
        self.time = time
        self.seconds = seconds
        self.hop = hop
        self.reason = reason
        self.ongoing = ongoing
    }
}
