/// Rate control for subscribers that report no arrival times.
///
/// It uses their own estimate (REMB) and the loss in their receiver reports
/// (draft-ietf-rmcat-gcc-02 §6).
struct ReceiverLimits {
    private static let growth = 1.08
    private static let growthOffset = 1_000.0
    /// Loss below which the rate grows, and above which it falls.
    private static let low = 0.02
    private static let high = 0.10
    private static let growthInterval: Int64 = 1_000_000_000
    private static let reductionInterval: Int64 = 300_000_000
    /// Nanoseconds for which a REMB estimate remains valid.
    private static let lifetime: Int64 = 10_000_000_000

    private var remb: (rate: Double, at: Int64)?
    private var lastGrowth: Int64?
    private var lastReduction: Int64 = .min / 2
    private(set) var loss: Double?

    var hasEstimate: Bool { remb != nil }

    mutating func noteEstimate(_ bitsPerSecond: Double, at now: Int64) {
        remb = (bitsPerSecond, now)
    }

    /// Returns the cap set by REMB, in bits a second; infinite without a valid one.
    mutating func cap(at now: Int64) -> Double {
        guard let remb, now &- remb.at < Self.lifetime else { return .infinity }
        return remb.rate
    }

    /// Returns the rate after a receiver report, in bits a second.
    mutating func rate(
        after share: Double,
        from rate: Double,
        sending: Double,
        roundTrip: Int64,
        at now: Int64
    ) -> Double {
        loss = share
        if share > Self.high {
            guard now &- lastReduction >= Self.reductionInterval &+ roundTrip else { return rate }
            lastReduction = now
            lastGrowth = now
            return rate * (1 - share / 2)
        }
        guard share < Self.low else { return rate }
        guard let since = lastGrowth, now &- since >= Self.growthInterval else {
            if lastGrowth == nil { lastGrowth = now }
            return rate
        }
        lastGrowth = now
        // The limit relative to the send rate, as a higher rate has not been tried.
        return max(rate, min(rate * Self.growth + Self.growthOffset, 1.5 * sending + 10_000))
    }
}
