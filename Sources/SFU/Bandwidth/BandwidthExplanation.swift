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
}

extension BandwidthEstimator {
    /// Why the estimate is what it is.
    var explanation: BandwidthExplanation {
        var told = BandwidthExplanation(
            estimate: estimate,
            cause: cause,
            changed: Instant(nanoseconds: changed),
            source: source,
            usage: .normal,
            acknowledged: nil,
            lossPermille: Int(saturating: (limits.loss ?? 0) * 1000),
            inherentLossPermille: 0,
            isLossLimited: false,
            roundTripMilliseconds: roundTrip.map { Int($0 / 1_000_000) },
            isApplicationLimited: load.isLimited,
            lastProbe: prober.lastResult.map { Int(saturating: $0) }
        )
        guard lastFeedback != nil, detectors.isMade else { return told }
        told.usage = detectors.value.usage
        told.acknowledged = detectors.value.acknowledged.bitsPerSecond.map { Int(saturating: $0) }
        told.lossPermille = Int(saturating: detectors.value.losses.averageLoss * 1000)
        told.inherentLossPermille = Int(saturating: detectors.value.losses.inherentLoss * 1000)
        told.isLossLimited = detectors.value.losses.state != .free
        return told
    }

    private var source: BandwidthExplanation.Source {
        if lastFeedback != nil { return .transportFeedback }
        if limits.hasEstimate { return .receiverEstimate }
        return limits.loss != nil ? .receiverReports : .none
    }
}
