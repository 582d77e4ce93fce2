package import RTP

/// Explanation of a subscriber's bandwidth estimate.
package struct BandwidthExplanation: Equatable, Sendable {
    /// Reason of the last change of the estimate.
    package enum Cause: UInt8, Sendable {
        /// Initial value; nothing is measured yet.
        case start
        /// Growth in the absence of congestion.
        case growth
        /// Overuse: growing queues.
        case overuse
        /// Loss beyond the path's inherent loss.
        case loss
        /// A probe that measured more, or the bottleneck rate of the first media.
        case probe
        /// Receiver-side estimate (REMB).
        case receiverEstimate
        /// Loss in RTCP receiver reports, if no better feedback is available.
        case receiverLoss
        /// Missing feedback.
        case silence
    }

    /// Feedback that the estimate is based on.
    package enum Source: UInt8, Sendable {
        case none, transportFeedback, receiverEstimate, receiverReports
    }

    package var estimate: Int
    package var cause: Cause
    /// Time of the last change of the estimate by more than 5 %.
    package var changed: Instant
    package var source: Source
    package var usage: PathUsage
    /// Acknowledged bitrate in bits a second, if known.
    package var acknowledged: Int?
    /// Loss over the last seconds, in thousandths of the packets sent.
    package var lossPermille: Int
    /// Inherent loss, which occurs at any rate, in thousandths of the packets sent.
    package var inherentLossPermille: Int
    /// Whether loss rather than delay limits the estimate now.
    package var isLossLimited: Bool
    package var roundTripMilliseconds: Int?
    /// Whether the sender is application-limited, so the acknowledged rate shows no path limit.
    package var isApplicationLimited: Bool
    /// Result of the last probe, in bits a second.
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

/// Usage of the path relative to its capacity: normal, overuse or underuse.
package enum PathUsage: UInt8, Sendable {
    case normal, over, under
}
