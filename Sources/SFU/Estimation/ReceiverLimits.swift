import RTP

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
    /// Milliseconds for which a REMB estimate remains valid.
    private static let lifetime: UInt32 = 10_000

    /// A REMB estimate; each viewer has room for a few.
    private struct Estimate {
        var sources = EstimatedSources.all
        /// In bits a second; 0 where there is none.
        var rate: Float = 0
        /// Arrival in milliseconds, truncated.
        var arrival: UInt32 = 0

        func isValid(at now: Int64) -> Bool {
            ReceiverLimits.milliseconds(now) &- arrival < ReceiverLimits.lifetime
        }
    }

    /// Estimates of sources of their own, latest first.
    ///
    /// A browser estimates for its whole transport. Others, such as aiortc, do so for each stream:
    /// then the path carries the sum.
    private var estimates: [3 of Estimate] = .init(repeating: Estimate())
    /// `.min` before the first report.
    private var lastGrowth = Int64.min
    private var lastReduction: Int64 = .min / 2
    private(set) var loss: Float?

    private static func milliseconds(_ nanoseconds: Int64) -> UInt32 {
        UInt32(truncatingIfNeeded: nanoseconds / 1_000_000)
    }

    var hasEstimate: Bool { estimates[0].rate > 0 }

    /// Takes an estimate, of more than 0 bits a second, in place of those that it covers.
    mutating func noteEstimate(_ bitsPerSecond: Double, of sources: EstimatedSources, at now: Int64)
    {
        let arrival = Self.milliseconds(now)
        var new: [3 of Estimate] = .init(repeating: Estimate())
        new[0] = Estimate(sources: sources, rate: Float(bitsPerSecond), arrival: arrival)
        var count = 1
        for index in estimates.indices where count < new.count {
            let other = estimates[index]
            guard other.rate > 0, !sources.replaces(other.sources), other.isValid(at: now) else {
                continue
            }
            new[count] = other
            count &+= 1
        }
        estimates = new
    }

    /// Returns the cap set by REMB, in bits a second; infinite without a valid one.
    func cap(at now: Int64) -> Double {
        var sum: Double?
        for index in estimates.indices {
            let estimate = estimates[index]
            guard estimate.rate > 0, estimate.isValid(at: now) else { continue }
            sum = (sum ?? 0) + Double(estimate.rate)
        }
        return sum ?? .infinity
    }

    /// Returns the rate after a receiver report, in bits a second.
    mutating func rate(
        after share: Double,
        from rate: Double,
        sending: Double,
        roundTrip: Int64,
        at now: Int64
    ) -> Double {
        loss = Float(share)
        if share > Self.high {
            guard now &- lastReduction >= Self.reductionInterval &+ roundTrip else { return rate }
            lastReduction = now
            lastGrowth = now
            return rate * (1 - share / 2)
        }
        guard share < Self.low else { return rate }
        guard lastGrowth > .min, now &- lastGrowth >= Self.growthInterval else {
            if lastGrowth == .min { lastGrowth = now }
            return rate
        }
        lastGrowth = now
        // The limit relative to the send rate, as a higher rate has not been tried.
        return max(rate, min(rate * Self.growth + Self.growthOffset, 1.5 * sending + 10_000))
    }
}

/// Sources that a REMB message is about: one of the transport's streams, or all of them.
struct EstimatedSources {
    /// The stream, or 0 for all.
    let stream: UInt32

    static let all = Self(stream: 0)

    private init(stream: UInt32) { self.stream = stream }

    init(_ stream: SSRC) { self.init(stream: stream.rawValue) }

    /// Whether an estimate of these replaces one of `other`.
    func replaces(_ other: Self) -> Bool {
        stream == 0 || other.stream == 0 || stream == other.stream
    }
}
