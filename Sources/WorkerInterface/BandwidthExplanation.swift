package import RTP

/// Why the estimate of a viewer's bandwidth is what it is.
package struct BandwidthExplanation: Equatable, Sendable {
    /// What last moved the estimate.
    package enum Cause: UInt8, Sendable {
        /// Nothing has been learnt yet.
        case start
        /// Growth, as nothing spoke against it.
        case growth
        /// Queues that grew.
        case overuse
        /// Loss beyond what the path loses at any rate, or the end of it.
        case loss
        /// A probe that showed more.
        case probe
        /// The viewer's own estimate (REMB).
        case receiverEstimate
        /// Loss in receiver reports, where nothing better is reported.
        case receiverLoss
        /// Feedback that stayed away.
        case silence
    }

    /// Where what is known comes from.
    package enum Source: UInt8, Sendable {
        case none, transportFeedback, receiverEstimate, receiverReports
    }

    package var estimate: Int
    package var cause: Cause
    /// When the estimate last moved by more than a twentieth.
    package var changed: Instant
    package var source: Source
    package var usage: PathUsage
    /// What the viewer gets, in bits a second, if known.
    package var acknowledged: Int?
    /// Thousandths lost of what was sent in the last seconds.
    package var lossPermille: Int
    /// Of those, what is thought to be lost at any rate.
    package var inherentLossPermille: Int
    /// Whether loss bounds the estimate now, rather than delay.
    package var isLossLimited: Bool
    package var roundTripMilliseconds: Int?
    /// Whether too little is sent to learn from.
    package var isApplicationLimited: Bool
    /// What the last probe showed, in bits a second.
    package var lastProbe: Int?

    package init(
        estimate: Int,
        cause: Cause,
        changed: Instant,
        source: Source,
        usage: PathUsage,
        acknowledged: Int? = nil,
        lossPermille: Int,
        inherentLossPermille: Int,
        isLossLimited: Bool,
        roundTripMilliseconds: Int? = nil,
        isApplicationLimited: Bool,
        lastProbe: Int? = nil
    ) {
        self.estimate = estimate
        self.cause = cause
        self.changed = changed
        self.source = source
        self.usage = usage
        self.acknowledged = acknowledged
        self.lossPermille = lossPermille
        self.inherentLossPermille = inherentLossPermille
        self.isLossLimited = isLossLimited
        self.roundTripMilliseconds = roundTripMilliseconds
        self.isApplicationLimited = isApplicationLimited
        self.lastProbe = lastProbe
    }
}

/// Whether the path is used beyond, at or below what it carries.
package enum PathUsage: UInt8, Sendable {
    case normal, over, under
}
