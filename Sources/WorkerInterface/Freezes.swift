package import RTP

/// Part of the way from the publisher's camera to the viewer's screen in which a picture froze.
package enum FreezeHop: UInt8, CaseIterable, Hashable, Sendable, BitwiseCopyable {
    /// Packets of the publisher were lost or late.
    case publisherUplink
    /// The publisher sent no frame, or no keyframe although asked.
    case publisherEncoder
    /// Packets waited or were dropped in sfud.
    case sfu
    /// Packets to the viewer were lost or late, or its path carries less than the lowest layer.
    case viewerDownlink
    /// All packets arrived in time, and the viewer still asked for keyframes.
    case viewerDecoder

    /// Name in the contract and in the metrics.
    package var name: String {
        switch self {
        case .publisherUplink: "publisher-uplink"
        case .publisherEncoder: "publisher-encoder"
        case .sfu: "sfu"
        case .viewerDownlink: "viewer-downlink"
        case .viewerDecoder: "viewer-decoder"
        }
    }
}

/// Evidence by which a stretch of a freeze is attributed to a hop.
package enum FreezeReason: UInt8, CaseIterable, Hashable, Sendable, BitwiseCopyable, Codable {
    /// Packets of the publisher are missing.
    case packetsMissing
    /// The publisher's packets came late and in a burst.
    case packetsLate
    /// Nothing at all was received from the publisher.
    case publisherSilent
    /// The publisher sent no frame, and no packet is missing.
    case noFrame
    /// The publisher did not answer a keyframe request in time.
    case noKeyframe
    /// An overloaded worker stopped the video.
    case shed
    /// The worker did nothing for a while.
    case stalled
    /// Packets waited in the pacer.
    case paced
    /// Packets were received and not forwarded.
    case discarded
    /// The slot waited for a keyframe that had just been, or had not been, requested.
    case switching
    /// The path carries less than the lowest layer.
    case tooNarrow
    /// The old layer was stopped because it filled the path, and the keyframe of a lower one is
    /// awaited.
    case steppingDown
    /// The viewer acknowledged no frame.
    case unacknowledged
    /// Frames arrived at the viewer late.
    case arrivedLate
    /// The viewer asked for packets that were lost on the way to it.
    case repairing
    /// The viewer asked for keyframes although all packets had arrived.
    case undecoded

    /// Hop that the evidence points to.
    package var hop: FreezeHop {
        switch self {
        case .packetsMissing, .packetsLate, .publisherSilent: .publisherUplink
        case .noFrame, .noKeyframe: .publisherEncoder
        case .shed, .stalled, .paced, .discarded, .switching: .sfu
        case .tooNarrow, .steppingDown, .unacknowledged, .arrivedLate, .repairing: .viewerDownlink
        case .undecoded: .viewerDecoder
        }
    }
}

/// One freeze of a viewer's picture.
package struct Freeze: Hashable, Sendable, BitwiseCopyable, Codable {
    package var began: Instant
    /// Length so far, if it has not ended.
    package var nanoseconds: Int64
    /// Evidence that accounts for the largest part of it.
    package var reason: FreezeReason
    /// Packets missing or requests made, where the reason counts any; 0 otherwise.
    package var figure: Int32
    package var hasEnded: Bool

    package init(
        began: Instant,
        nanoseconds: Int64,
        reason: FreezeReason,
        figure: Int32 = 0,
        hasEnded: Bool = true
    ) {
        self.began = began
        self.nanoseconds = nanoseconds
        self.reason = reason
        self.figure = figure
        self.hasEnded = hasEnded
    }
}

/// Number and total length of freezes, by hop.
package struct FreezeTotals: Hashable, Sendable, BitwiseCopyable, Codable {
    /// Number and total length of the freezes of one hop.
    package struct Sum: Hashable, Sendable, BitwiseCopyable, Codable {
        package var count: UInt64 = 0
        package var nanoseconds: Int64 = 0

        package init() {}

        /// Total length, in seconds.
        package var seconds: Double { Double(nanoseconds) / 1e9 }

        package static func += (total: inout Self, other: Self) {
            total.count &+= other.count
            total.nanoseconds &+= other.nanoseconds
        }
    }

    private var publisherUplink = Sum()
    private var publisherEncoder = Sum()
    private var sfu = Sum()
    private var viewerDownlink = Sum()
    private var viewerDecoder = Sum()

    package init() {}

    package subscript(hop: FreezeHop) -> Sum {
        get { self[keyPath: Self.path(hop)] }
        set { self[keyPath: Self.path(hop)] = newValue }
    }

    /// Sum over all hops.
    package var all: Sum { FreezeHop.allCases.reduce(into: Sum()) { $0 += self[$1] } }

    package mutating func add(_ freeze: Freeze) {
        self[freeze.reason.hop].count &+= 1
        self[freeze.reason.hop].nanoseconds &+= freeze.nanoseconds
    }

    package static func += (total: inout Self, other: Self) {
        for hop in FreezeHop.allCases { total[hop] += other[hop] }
    }

    private static func path(_ hop: FreezeHop) -> WritableKeyPath<Self, Sum> {
        switch hop {
        case .publisherUplink: \.publisherUplink
        case .publisherEncoder: \.publisherEncoder
        case .sfu: \.sfu
        case .viewerDownlink: \.viewerDownlink
        case .viewerDecoder: \.viewerDecoder
        }
    }
}

/// Freezes of one subscription's video.
package struct FreezeAccount: Hashable, Sendable, Codable {
    /// Freezes that have ended, since the subscription began.
    package var totals = FreezeTotals()
    /// Last freezes, at most 16, oldest first; the last one may still be going on.
    package var recent: [Freeze] = []

    package init() {}
}
