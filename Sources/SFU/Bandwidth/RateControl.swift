import WorkerInterface

/// Turns what the delays say into a rate: up by little or by factors, down by 15 % of what was
/// acknowledged (draft-ietf-rmcat-gcc-02 §5.5).
struct RateControl {
    private enum State: UInt8 { case hold, increase }

    private static let decrease = 0.85
    /// A second's growth while the path's capacity is not known.
    private static let growth = 0.08
    /// How far the estimate may run ahead of what was acknowledged.
    private static let lead = 1.5
    private static let leadOffset = 10_000.0
    /// The same while packets wait long: where a queue is full, more would only cost others.
    private static let queuedLead = 1.1
    /// Nanoseconds of waiting that are long.
    private static let longWait = 80_000_000.0
    /// A second's growth near the path's capacity: so much, but no more than this share.
    private static let additive = 40_000.0
    private static let mostAdditive = 0.08
    private static let leastAdditive = 4_000.0
    /// Nanoseconds after a drop for which growth stays that of a rate near the capacity.
    private static let caution: Int64 = 5_000_000_000
    /// Nanoseconds, beyond a round trip, for which a rate just learnt is not given up.
    private static let settling: Int64 = 300_000_000
    /// A second's growth beside flows that go by loss.
    private static let competingGrowth = 0.08
    /// What a test for such flows sends, of what was acknowledged.
    private static let testing = 0.8

    private var state = State.hold
    private var capacity = LinkCapacity()
    private var isTesting = false
    private var lastIncrease: Int64?
    private var lastDecrease: Int64?
    private var learnt: Int64?
    private(set) var estimate: Double

    init(_ startBitrate: Double) { estimate = startBitrate }

    /// What bounds one step.
    struct Input {
        var usage: PathUsage
        var acknowledged: Double?
        /// What comes out of the path's queue, if there is one; bits a second like all rates.
        var pace: Double?
        var roundTrip: Int64
        /// How long packets wait on the way, in nanoseconds.
        var waiting: Double
        var rule: Contention.Rule
        /// What TCP would get.
        var fair: Double
        /// The rate below which queues that grow are no reason to give way.
        var floor: Double
        /// Whether the sender offers too little to learn from.
        var isApplicationLimited: Bool
        var bounds: ClosedRange<Double>
    }

    /// Takes one step.
    ///
    /// - Returns: Whether the rate went down.
    mutating func update(_ input: Input, at now: Int64) -> Bool {
        switch input.rule {
        case .delay: break
        case .loss: return compete(input, at: now)
        case .test:
            if !isTesting { test(input, at: now) }
            isTesting = true
            return false
        }
        isTesting = false
        switch input.usage {
        case .over:
            guard mayReduce(input, at: now) else { return false }
            return reduce(input, at: now)
        case .normal:
            if state == .hold { lastIncrease = now }
            state = .increase
            grow(input, at: now)
        case .under:
            // The queue drains: what it held is no capacity of ours.
            state = .hold
        }
        return false
    }

    /// Goes by loss, as whoever fills the queue does: towards what TCP would get.
    private mutating func compete(_ input: Input, at now: Int64) -> Bool {
        state = .hold
        defer { lastIncrease = now }
        let fair = input.fair
        if estimate > fair {
            guard now &- (lastDecrease ?? .min / 2) > input.roundTrip else { return false }
            lastDecrease = now
            estimate = max(fair, estimate * Self.decrease, input.bounds.lowerBound)
            return true
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

    /// Sends less than came through, to see whether the queue gets shorter.
    private mutating func test(_ input: Input, at now: Int64) {
        state = .hold
        guard let acknowledged = input.acknowledged else { return }
        estimate = min(estimate, max(Self.testing * acknowledged, input.bounds.lowerBound))
    }

    /// Takes a rate that was measured by other means.
    mutating func learn(_ rate: Double, at now: Int64) {
        estimate = rate
        lastIncrease = now
        learnt = now
        if rate > capacity.upper { capacity.reset() }
    }

    /// Brings the estimate up to what comes through anyway.
    mutating func raise(to rate: Double) { estimate = max(estimate, rate) }

    /// Brings the estimate down to what something else allows.
    mutating func limit(to rate: Double) { estimate = min(estimate, rate) }

    /// Not twice in one round trip: the path must have had time to show what the first did.
    private func mayReduce(_ input: Input, at now: Int64) -> Bool {
        // A probe that showed much leaves a short queue, which is no reason to give it back.
        if let learnt, now &- learnt < Self.settling &+ input.roundTrip { return false }
        guard let lastDecrease else { return true }
        let pause = min(max(input.roundTrip, 10_000_000), 200_000_000)
        if now &- lastDecrease >= pause { return true }
        return (input.acknowledged ?? .infinity) < 0.5 * estimate
    }

    private mutating func reduce(_ input: Input, at now: Int64) -> Bool {
        state = .hold
        let before = estimate
        guard let average = input.acknowledged else {
            estimate = max(estimate / 2, input.bounds.lowerBound)
            lastDecrease = now
            return estimate < before
        }
        // The average lags behind a large frame that comes after small ones.
        let acknowledged = max(average, input.pace ?? 0)
        var target = max(Self.decrease * acknowledged, input.floor)
        if target > estimate, let known = capacity.estimate {
            target = min(target, Self.decrease * known)
        }
        if acknowledged < capacity.lower || acknowledged > capacity.upper { capacity.reset() }
        capacity.noteOveruse(acknowledged)
        estimate = min(estimate, max(target, input.bounds.lowerBound))
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
            let lead = input.waiting > Self.longWait ? Self.queuedLead : Self.lead
            target = min(target, lead * acknowledged + Self.leadOffset)
        }
        estimate = max(estimate, min(target, input.bounds.upperBound))
    }

    /// Bits a second for each second.
    ///
    /// The same for all round trips, and for all rates that are not small, so that flows that
    /// share a path come to share it evenly.
    private var nearMaximumGrowth: Double {
        max(min(Self.additive, Self.mostAdditive * estimate), Self.leastAdditive)
    }
}
