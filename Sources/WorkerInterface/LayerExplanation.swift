package import RTP

/// Explanation of the video layer that one slot is sent, and of the limit on it.
package struct LayerExplanation: Hashable, Sendable, Codable {
    /// Forwarded layer; `nil` for no video.
    package var sent: LayerDescription?
    /// Encodings of the publisher, live or not; one with several spatial layers is listed by layer.
    package var offered: [LayerDescription]
    /// RIDs of the encodings, in the order of the offer.
    package var names: [String?]
    /// Bandwidth estimate of the subscriber's path, in bits a second; `nil` if unknown.
    package var estimate: Int?
    /// Bandwidth allotted to this slot, in bits a second.
    package var share: Int
    /// Limit that keeps it from a higher layer.
    package var limit: LayerLimit
    /// Estimate that would allow a higher layer, in bits a second, if bandwidth is the limit.
    package var needed: Int?
    /// Time of the next try of a layer that the path did not carry, if one is pending.
    package var retryAt: Instant?
    /// Last layer switches, at most 32, oldest first.
    package var decisions: [LayerDecision]
    package var freezes = FreezeAccount()

    package init(
        sent: LayerDescription? = nil,
        offered: [LayerDescription],
        names: [String?],
        estimate: Int? = nil,
        share: Int,
        limit: LayerLimit,
        needed: Int? = nil,
        retryAt: Instant? = nil,
        decisions: [LayerDecision]
    ) {
        self.sent = sent
        self.offered = offered
        self.names = names
        self.estimate = estimate
        self.share = share
        self.limit = limit
        self.needed = needed
        self.retryAt = retryAt
        self.decisions = decisions
    }
}

/// Limit that keeps a subscriber from a higher layer.
package enum LayerLimit: UInt8, Hashable, Sendable, BitwiseCopyable, Codable {
    /// No limit: the highest layer is sent.
    case none
    /// Preference of the subscriber.
    case preference
    /// Role of the subscriber or of the publisher.
    case role
    /// Bandwidth of the subscriber's path.
    case bandwidth
    /// Publisher that sends no higher layer, or nothing.
    case publisher
    /// Overload of the subscriber's worker.
    case overload
    /// Link between two nodes, which does not carry more.
    case link
}

/// Switch of a slot to another layer.
package struct LayerDecision: Hashable, Sendable, BitwiseCopyable, Codable {
    /// Compact description of a layer.
    package struct Layer: Hashable, Sendable, BitwiseCopyable, Codable {
        /// Index of the encoding, in the order of the offer.
        package var position: UInt8
        /// Frame rate in frames a second.
        package var frameRate: UInt8
        /// Size in pixels.
        package var width: UInt16
        package var height: UInt16

        package init(position: UInt8, frameRate: UInt8, width: UInt16, height: UInt16) {
            self.position = position
            self.frameRate = frameRate
            self.width = width
            self.height = height
        }
    }

    package var at: Instant
    /// Layer before the switch; `nil` for no video.
    package var from: Layer?
    package var to: Layer?
    /// Limit that forced the switch down, or whose end allowed the switch up.
    package var cause: LayerLimit

    package init(at: Instant, from: Layer?, to: Layer?, cause: LayerLimit) {
        self.at = at
        self.from = from
        self.to = to
        self.cause = cause
    }
}

/// Reason for which a slot's video is paused.
package enum VideoHold: Hashable, Sendable, Codable {
    /// Bandwidth is too low for the lowest layer.
    case quality
    /// The publisher's video is no longer received.
    case interrupted
    /// Every layer exceeds the role's cap.
    case role
}
