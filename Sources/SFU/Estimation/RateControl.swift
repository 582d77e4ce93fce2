import WorkerInterface

/// Delay-based rate control (draft-ietf-rmcat-gcc-02 §5.5).
///
/// It increases additively or multiplicatively, and decreases to 85 % of the acknowledged rate.
struct RateControl {
    private enum State: UInt8 { case hold, increase }

    private static let decrease = 0.85
    /// Ratio of the path's own rate to the acknowledged one below which the path has become narrow.
    static let narrowing = 0.75
    /// Share of the path's own rate that is sent then: less leaves room that layers cannot use.
    private static let narrowShare = 0.95
    /// Growth per second while the path's capacity is unknown.
    private static let growth = 0.08
    /// Limit of the estimate relative to the acknowledged rate.
    private static let lead = 1.1
    private static let leadOffset = 2_000.0
    /// Growth per second near the path's capacity in bits a second, its largest share of the
    /// estimate, and its minimum.
    private static let additive = 40_000.0
    private static let mostAdditive = 0.08
    private static let leastAdditive = 4_000.0
    /// Nanoseconds after a drop during which growth is additive.
    private static let caution: Int64 = 5_000_000_000
    /// Nanoseconds, beyond a round trip, for which a rate just measured by a probe is kept.
    static let settling: Int64 = 300_000_000
    /// Nanoseconds, beyond a round trip, for which a probe counts in the acknowledged rate.
    static let counting: Int64 = 1_000_000_000
    /// Growth per second beside loss-based flows.
    private static let competingGrowth = 0.08
    /// Share of the acknowledged rate that is sent during a test for such flows.
    private static let testing = 0.8

    private var state = State.hold
    private var capacity = LinkCapacity()
    /// Estimate before the test that is going on.
    private var beforeTest: Double?
    private var lastIncrease: Int64?
    private var lastDecrease: Int64?
    private var learnt: Int64?
    /// Rate that was acknowledged last without a probe's padding, in bits a second; it fits in
    /// behind the time.
    private var ownRate = Float.infinity
    private(set) var estimate: Double

    init(_ startBitrate: Double) { estimate = startBitrate }

    /// Input of one step; all rates are in bits a second.
    struct Input {
        var usage: PathUsage
        var acknowledged: Double?
        /// Rate at which the path's queue drains, if there is one.
        var bottleneckRate: Double?
        /// Whether that was measured for long enough to count more than the acknowledged rate.
        var isBottleneckSure: Bool
        var roundTrip: Int64
        /// Queuing delay on the path, in nanoseconds.
        var waiting: Double
        var rule: Contention.Rule
        /// Whether the acknowledged rate may be that of a probe's padding.
        var isRateOfProbe: Bool
        /// Whether the queue is no longer than a probe leaves, soon after one.
        var isQueueOfProbe: Bool
        /// Rate that TCP would get.
        var fair: Double
        /// Rate below which growing queues do not reduce the rate.
        var floor: Double
        /// Rate that the lowest layers need, if it is to be kept, else 0.
        var least: Double
        /// Whether the sender is application-limited, so the acknowledged rate shows no path limit.
        var isApplicationLimited: Bool
        var bounds: ClosedRange<Double>

        /// Rate below which no reduction goes.
        var lowest: Double { max(bounds.lowerBound, least) }
    }

    /// Takes one step.
    ///
    /// - Returns: Whether the rate went down.
    mutating func update(_ input: Input, at now: Int64) -> Bool {
        if !input.isRateOfProbe { ownRate = input.acknowledged.map(Float.init) ?? ownRate }
        switch input.rule {
        case .delay: break
        case .longerPath:
            // The test that this ends, if any, has lowered the rate for nothing.
            if let before = beforeTest { raise(to: min(before, input.bounds.upperBound)) }
        case .loss:
            beforeTest = nil
            return compete(input, at: now)
        case .test:
            if beforeTest == nil { test(input, at: now) }
            return false
        }
        beforeTest = nil
        switch input.usage {
        case .over:
            guard mayReduce(input, at: now) else { return false }
            return reduce(input, at: now)
        case .normal:
            if state == .hold { lastIncrease = now }
            state = .increase
            grow(input, at: now)
        case .under:
            // The queue is draining, so the rate stays.
            state = .hold
        }
        return false
    }

    /// Follows loss beside loss-based flows: moves towards the rate that TCP would get.
    private mutating func compete(_ input: Input, at now: Int64) -> Bool {
        state = .hold
        defer { lastIncrease = now }
        let fair = input.fair
        if estimate > fair {
            guard now &- (lastDecrease ?? .min / 2) > input.roundTrip else { return false }
            lastDecrease = now
            let before = estimate
            estimate = min(before, max(fair, before * Self.decrease, input.lowest))
            return estimate < before
        }
        guard !input.isApplicationLimited, let since = lastIncrease else { return false }
        let seconds = min(Double(max(0, now &- since)) / 1e9, 1)
        var target = estimate * (1 + Self.competingGrowth * seconds)
        if let acknowledged = input.acknowledged {
            target = min(target, Self.lead * acknowledged + Self.leadOffset)
        }
        estimate = max(estimate, min(target, fair, input.bounds.upperBound))
        return false
    }

    /// Sends less than was acknowledged, to see whether the queue shrinks.
    private mutating func test(_ input: Input, at now: Int64) {
        state = .hold
        beforeTest = estimate
        guard let acknowledged = input.acknowledged else { return }
        estimate = min(estimate, max(Self.testing * acknowledged, input.bounds.lowerBound))
    }

    /// Takes a rate that was measured by other means, in bits a second.
    mutating func learn(_ rate: Double, at now: Int64) {
        estimate = rate
        lastIncrease = now
        learnt = now
        if rate > capacity.upper { capacity.reset() }
    }

    /// Raises the estimate to a rate that is delivered anyway.
    mutating func raise(to rate: Double) { estimate = max(estimate, rate) }

    /// Lowers the estimate to a limit set elsewhere.
    mutating func limit(to rate: Double) { estimate = min(estimate, rate) }

    /// Whether the estimate may be reduced; a round trip must pass for the last reduction to take
    /// effect.
    private func mayReduce(_ input: Input, at now: Int64) -> Bool {
        // A successful probe leaves a short queue, which is no reason for a reduction.
        if let learnt, now &- learnt < Self.settling &+ input.roundTrip { return false }
        if input.isQueueOfProbe { return false }
        guard let lastDecrease else { return true }
        let pause = min(max(input.roundTrip, 10_000_000), 200_000_000)
        if now &- lastDecrease >= pause { return true }
        return (input.acknowledged ?? .infinity) < 0.5 * estimate
    }

    private mutating func reduce(_ input: Input, at now: Int64) -> Bool {
        state = .hold
        let before = estimate
        guard let average = input.acknowledged else {
            estimate = min(before, max(before / 2, input.lowest))
            lastDecrease = now
            return estimate < before
        }
        // The average lags when a large frame follows small ones, and when a path becomes narrow.
        let bottleneck = input.bottleneckRate ?? 0
        let isNarrow = input.isBottleneckSure && bottleneck < Self.narrowing * average
        let acknowledged = isNarrow ? bottleneck : max(average, bottleneck)
        let share = isNarrow ? Self.narrowShare : Self.decrease
        var target = max(share * acknowledged, input.floor)
        if target > estimate, let known = capacity.estimate {
            target = min(target, Self.decrease * known)
        }
        if acknowledged < capacity.lower || acknowledged > capacity.upper { capacity.reset() }
        capacity.noteOveruse(acknowledged)
        estimate = min(estimate, max(target, input.lowest))
        lastDecrease = now
        return estimate < before
    }

    private mutating func grow(_ input: Input, at now: Int64) {
        defer { lastIncrease = now }
        if let acknowledged = input.acknowledged, acknowledged > capacity.upper {
            capacity.reset()
        }
        guard !input.isApplicationLimited, let since = lastIncrease else { return }
        let seconds = min(Double(max(0, now &- since)) / 1e9, 1)
        var target = estimate
        if capacity.estimate != nil || now &- (lastDecrease ?? .min / 2) < Self.caution {
            target += nearMaximumGrowth * seconds
        } else {
            target += max(estimate * Self.growth * seconds, 1_000 * seconds)
        }
        if let acknowledged = input.acknowledged {
            target = min(target, Self.lead * min(acknowledged, Double(ownRate)) + Self.leadOffset)
        }
        estimate = max(estimate, min(target, input.bounds.upperBound))
    }

    /// Growth near the path's capacity, in bits a second per second.
    ///
    /// It is the same for all round-trip times and for all but low rates, so flows that share a
    /// path converge to equal shares.
    private var nearMaximumGrowth: Double {
        max(min(Self.additive, Self.mostAdditive * estimate), Self.leastAdditive)
    }
}

/// Link capacity estimate: mean and spread of the rate acknowledged during overuse
/// (draft-ietf-rmcat-gcc-02 §5.5).
///
/// The rate grows additively near it and faster while no capacity is known.
struct LinkCapacity {
    private static let weight = 0.05

    /// Mean in kbit/s; 0 while unknown.
    private var mean = 0.0
    private var deviation = 0.4

    var estimate: Double? { mean > 0 ? mean * 1000 : nil }
    var upper: Double { mean > 0 ? (mean + 3 * spread) * 1000 : .infinity }
    var lower: Double { mean > 0 ? max(0, mean - 3 * spread) * 1000 : 0 }

    private var spread: Double { (deviation * mean).squareRoot() }

    /// Adds the rate acknowledged during an overuse, in bits a second.
    mutating func noteOveruse(_ bitsPerSecond: Double) {
        let sample = bitsPerSecond / 1000
        mean = mean > 0 ? (1 - Self.weight) * mean + Self.weight * sample : sample
        let error = mean - sample
        let relative = error * error / max(mean, 1)
        deviation = (1 - Self.weight) * deviation + Self.weight * relative
        deviation = min(max(deviation, 0.4), 2.5)
    }

    mutating func reset() { self = LinkCapacity() }
}
