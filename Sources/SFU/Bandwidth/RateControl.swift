/// Turns what the delays say into a rate: up by little or by factors, down by 15 % of what was
/// acknowledged (draft-ietf-rmcat-gcc-02 §5.5).
struct RateControl {
    enum State: UInt8 { case hold, increase, decrease }

    private static let decrease = 0.85
    /// A second's growth while the path's capacity is not known.
    private static let growth = 0.08
    /// How far the estimate may run ahead of what was acknowledged.
    private static let lead = 1.5
    private static let leadOffset = 10_000.0

    private var state = State.hold
    private var capacity = LinkCapacity()
    private var lastIncrease: Int64?
    private var lastDecrease: Int64?
    private(set) var estimate: Double

    init(_ startBitrate: Double) { estimate = startBitrate }

    /// What bounds one step.
    struct Input {
        var usage: PathUsage
        var acknowledged: Double?
        var roundTrip: Int64
        /// Whether the sender offers too little to learn from.
        var isApplicationLimited: Bool
        /// Whether a growing estimate is wanted at all.
        var bounds: ClosedRange<Double>
    }

    /// Takes one step; returns whether the rate went down.
    mutating func update(_ input: Input, at now: Int64) -> Bool {
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

    /// Takes a rate that was measured by other means.
    mutating func learn(_ rate: Double, at now: Int64) {
        estimate = rate
        lastIncrease = now
        if rate > capacity.upper { capacity.reset() }
    }

    /// Brings the estimate down to what something else allows.
    mutating func limit(to rate: Double) { estimate = min(estimate, rate) }

    /// Not twice in one round trip: the path must have had time to show what the first did.
    private func mayReduce(_ input: Input, at now: Int64) -> Bool {
        guard let lastDecrease else { return true }
        let pause = min(max(input.roundTrip, 10_000_000), 200_000_000)
        if now - lastDecrease >= pause { return true }
        return (input.acknowledged ?? .infinity) < 0.5 * estimate
    }

    private mutating func reduce(_ input: Input, at now: Int64) -> Bool {
        state = .hold
        let before = estimate
        guard let acknowledged = input.acknowledged else {
            estimate = max(estimate / 2, input.bounds.lowerBound)
            lastDecrease = now
            return estimate < before
        }
        var target = Self.decrease * acknowledged
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
        let seconds = min(Double(max(0, now - since)) / 1e9, 1)
        var target = estimate
        if capacity.estimate != nil {
            target += nearMaximumGrowth(roundTrip: input.roundTrip) * seconds
        } else {
            target += max(estimate * Self.growth * seconds, 1_000 * seconds)
        }
        if let acknowledged = input.acknowledged {
            target = min(target, Self.lead * acknowledged + Self.leadOffset)
        }
        estimate = max(estimate, min(target, input.bounds.upperBound))
    }

    /// Bits a second for each second: a packet of the present size in each response time.
    private func nearMaximumGrowth(roundTrip: Int64) -> Double {
        let frame = estimate / 30
        let packets = (frame / 9_600).rounded(.up)
        let packet = frame / max(packets, 1)
        let response = Double(roundTrip) / 1e9 + 0.1
        return max(4_000, packet / response)
    }
}
