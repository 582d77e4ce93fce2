package import RTP

/// What one slot's viewer is sent of a video, and why it is no more.
package struct LayerExplanation: Hashable, Sendable {
    /// What leaves for it; `nil`: no video.
    package var sent: LayerDescription?
    /// What the publisher sends, live or not: its encodings, and of each that has several its
    /// spatial layers.
    package var offered: [LayerDescription]
    /// What the encodings are called, as the offer lists them.
    package var names: [String?]
    /// What the viewer's path carries, in bits a second; `nil` while nobody knows.
    package var estimate: Int?
    /// What of that its allocation gave to this slot, in bits a second.
    package var share: Int
    /// The one thing that keeps it from more.
    package var limit: LayerLimit
    /// The estimate from which on it would be sent more, in bits a second, where that is the limit.
    package var needed: Int?
    /// When a layer may be tried again that the path did not carry, where that is waited for.
    package var retryAt: Instant?
    /// The last 32 at most, oldest first.
    package var decisions: [LayerDecision]

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

/// What keeps a viewer from a higher layer.
package enum LayerLimit: UInt8, Hashable, Sendable, BitwiseCopyable {
    /// It has the highest there is.
    case none
    /// The subscriber wants no more.
    case preference
    /// A role may not watch, or not send, more.
    case role
    /// The viewer's path carries no more.
    case bandwidth
    /// The publisher sends no more, or nothing at all.
    case publisher
    /// The viewer's worker has more to do than it can.
    case overload
}

/// One turn of a slot to another layer.
package struct LayerDecision: Hashable, Sendable, BitwiseCopyable {
    /// A layer, small enough to keep many.
    package struct Layer: Hashable, Sendable, BitwiseCopyable {
        /// Which of the publication's encodings, as the offer lists them.
        package var position: UInt8
        /// Frames a second.
        package var frameRate: UInt8
        /// Pixels.
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
    /// `nil`: no video.
    package var from: Layer?
    package var to: Layer?
    /// What made it turn: a limit that came, or one that went.
    package var cause: LayerLimit

    package init(at: Instant, from: Layer?, to: Layer?, cause: LayerLimit) {
        self.at = at
        self.from = from
        self.to = to
        self.cause = cause
    }
}

/// Why a worker sends no video to a slot that might have it.
package enum VideoHold: Hashable, Sendable {
    /// The path does not carry the lowest layer.
    case quality
    /// The publisher's video stopped coming.
    case interrupted
    /// Every layer is above what a role allows.
    case role
}
