/// Finds the rate above which packets are lost for want of capacity.
///
/// Two unknowns explain what was lost: the share that the path loses at any rate (radio,
/// policing), and a capacity beyond which the excess is lost. The pair that makes the last
/// seconds' losses most likely is taken, as current libwebrtc does; 10 % of random loss then
/// bounds the rate far less than 10 % of overflow.
struct LossControl {
    enum State: UInt8 {
        /// Loss says nothing: the delays decide.
        case free
        case decreasing, increasing
    }

    private struct Observation: BitwiseCopyable {
        /// In kbit/s.
        var rate: Float = 0
        var packets: Float = 0
        var lost: Float = 0
    }

    private struct Model {
        var inherent: Double
        /// In bits a second.
        var capacity: Double
    }

    private static let window = 20
    /// Nanoseconds of sending that make one observation, and its least packets.
    private static let length: Int64 = 250_000_000
    private static let fewestPackets: Float = 10
    private static let fewestObservations = 3
    /// How much less an observation weighs than the next one.
    private static let fading = 0.9
    private static let inherentFloor = 0.001
    /// Loss that no rate is held responsible for, and what more may cost.
    ///
    /// At a share p beyond it
    /// the rate is bounded by `balance` / p. 10 % allows 2 Mbit/s, 20 % 670 kbit/s.
    private static let tolerated = 0.05
    private static let balance = 100_000.0
    /// Of what came through, what loss alone never takes.
    private static let kept = 0.85
    /// How much a factor e in capacity is worth against likelihood, for one packet.
    private static let optimism = 0.02
    private static let steadiness = 0.0002
    private static let optimismEnds = 0.2
    /// Growth of a bounded rate within one `increaseWindow`, and against what was acknowledged.
    private static let increase = 1.3
    private static let lead = 1.5
    private static let increaseWindow: Int64 = 300_000_000

    private var observations = [20 of Observation](repeating: Observation())
    private var count = 0
    private var packets: Float = 0
    private var lost: Float = 0
    private var bytes = 0
    private var started: Int64?
    private var ended: Int64 = 0
    private var model = Model(inherent: 0.01, capacity: 0)
    private var windowStart: Int64 = .min / 2
    private var windowLimit = Double.infinity
    private(set) var state = State.free
    /// The share lost in the last seconds, the newest weighing most.
    private(set) var averageLoss = 0.0

    /// Where the rate may go; infinite while loss says nothing.
    var limit: Double { state == .free ? .infinity : model.capacity }
    var inherentLoss: Double { model.inherent }

    /// Notes what became of a packet that left at `sent`.
    mutating func note(bytes size: Int, sent: Int64, isLost: Bool) {
        if started == nil { started = sent }
        ended = max(ended, sent)
        packets += 1
        bytes &+= size
        if isLost { lost += 1 }
    }

    /// A packet that was noted as lost has come after all.
    mutating func takeBack() { lost = max(0, lost - 1) }

    /// Ends the observation under way if it is long enough, and judges again.
    ///
    /// Where little is sent for want of more, what came through is not all that the path carries.
    mutating func update(
        delayBased: Double,
        acknowledged: Double?,
        isApplicationLimited: Bool,
        floor: Double
    ) {
        guard let begin = started, packets >= Self.fewestPackets,
            ended &- begin >= Self.length
        else { return }
        // The last packet's own time is not within the stretch.
        let rate = Double(bytes) * 8e6 / Double(ended &- begin) * Double((packets - 1) / packets)
        observations[count % Self.window] = Observation(
            rate: Float(rate),
            packets: packets,
            lost: lost
        )
        count &+= 1
        started = nil
        packets = 0
        lost = 0
        bytes = 0
        averageLoss = measureLoss()
        guard count >= Self.fewestObservations else { return }
        let shown = isApplicationLimited ? nil : acknowledged
        judge(delayBased: delayBased, acknowledged: acknowledged, shown: shown, floor: floor)
    }

    /// A probe or a new path has shown more than was known.
    mutating func learn(_ rate: Double) {
        if state != .free { model.capacity = max(model.capacity, rate) }
    }

    mutating func reset() { self = LossControl() }

    private mutating func judge(
        delayBased: Double,
        acknowledged: Double?,
        shown: Double?,
        floor: Double
    ) {
        if state == .free { model.capacity = delayBased }
        let current = model
        // What came through did so at any loss.
        let bound = max(instantBound, Self.kept * (acknowledged ?? 0), floor)
        var best = current
        var bestScore = -Double.infinity
        for index in 0..<5 {
            guard let candidate = candidate(index, current, delayBased, shown) else {
                continue
            }
            var trial = Model(inherent: current.inherent, capacity: min(candidate, bound))
            trial.inherent = likeliestLoss(of: trial)
            let score = score(of: trial)
            guard score > bestScore else { continue }
            bestScore = score
            best = trial
        }
        if best.capacity > current.capacity, averageLoss > best.inherent {
            best.capacity = min(current.capacity, bound)
        }
        best.capacity = max(slowed(best.capacity, from: current.capacity, acknowledged), floor)
        settle(best, from: current, delayBased: delayBased)
    }

    /// What the capacity may be: a little more or less than before, what came through, or what
    /// the delays allow.
    private func candidate(
        _ index: Int,
        _ current: Model,
        _ delayBased: Double,
        _ shown: Double?
    ) -> Double? {
        switch index {
        case 0: current.capacity
        case 1: current.capacity * 1.02
        case 2:
            // Less than came through would be more caution than the loss asks for.
            max(current.capacity * 0.95, min(current.capacity, shown ?? 0))
        case 3: shown.map { min($0, delayBased) }
        default: delayBased
        }
    }

    private mutating func settle(_ best: Model, from current: Model, delayBased: Double) {
        model = best
        guard best.capacity < delayBased else {
            state = .free
            windowLimit = .infinity
            return
        }
        // Where little is lost any more and the rate falls no further, more may be tried.
        let isFalling = best.capacity < current.capacity
        state = isFalling || averageLoss > Self.tolerated ? .decreasing : .increasing
        guard ended &- windowStart >= Self.increaseWindow else { return }
        windowStart = ended
        windowLimit = best.capacity * Self.increase
    }

    /// Growth of a rate that loss had bounded is watched.
    private func slowed(_ rate: Double, from before: Double, _ acknowledged: Double?) -> Double {
        guard state != .free, rate > before else { return rate }
        var limit = windowLimit
        if let acknowledged { limit = min(limit, Self.lead * acknowledged) }
        return max(before, min(rate, limit))
    }

    /// The rate that the loss of the last seconds allows at all.
    private var instantBound: Double {
        guard averageLoss > Self.tolerated else { return .infinity }
        return Self.balance / (averageLoss - Self.tolerated)
    }

    private mutating func measureLoss() -> Double {
        var weight = 1.0
        var all = 0.0
        var missing = 0.0
        for back in 0..<min(count, Self.window) {
            let observation = observations[(count - 1 - back) % Self.window]
            all += weight * Double(observation.packets)
            missing += weight * Double(observation.lost)
            weight *= Self.fading
        }
        return all > 0 ? missing / all : 0
    }

    /// One damped Newton step towards the inherent loss that explains best what was lost.
    private mutating func likeliestLoss(of trial: Model) -> Double {
        var slope = 0.0
        var curvature = 0.0
        var weight = 1.0
        for back in 0..<min(count, Self.window) {
            let observation = observations[(count - 1 - back) % Self.window]
            let lost = Double(observation.lost)
            let arrived = Double(observation.packets) - lost
            let kept = 1 - excess(Double(observation.rate) * 1000, over: trial.capacity)
            let share = Self.share(1 - (1 - trial.inherent) * kept)
            slope += weight * kept * (lost / share - arrived / (1 - share))
            curvature -=
                weight * kept * kept
                * (lost / (share * share)
                    + arrived / ((1 - share) * (1 - share)))
            weight *= Self.fading
        }
        let ceiling = trial.capacity > 0 ? Self.tolerated + Self.balance / trial.capacity : 1
        let stepped = curvature < 0 ? trial.inherent - 0.75 * slope / curvature : trial.inherent
        return min(max(stepped, Self.inherentFloor), max(ceiling, Self.inherentFloor))
    }

    /// The log likelihood of the last seconds' losses, and some credit for a high capacity that
    /// explains them as well as a low one.
    private mutating func score(of trial: Model) -> Double {
        let credit = max(0, 1 - averageLoss / Self.optimismEnds)
        let kilobits = trial.capacity / 1000
        let bias =
            credit
            * (Self.steadiness * kilobits + Self.optimism * naturalLogarithm(1 + kilobits))
        var result = 0.0
        var weight = 1.0
        for back in 0..<min(count, Self.window) {
            let observation = observations[(count - 1 - back) % Self.window]
            let lost = Double(observation.lost)
            let arrived = Double(observation.packets) - lost
            let kept = 1 - excess(Double(observation.rate) * 1000, over: trial.capacity)
            let share = Self.share(1 - (1 - trial.inherent) * kept)
            result +=
                weight * (lost * naturalLogarithm(share) + arrived * naturalLogarithm(1 - share))
            result += weight * bias * Double(observation.packets)
            weight *= Self.fading
        }
        return result
    }

    /// The share of `rate` that a path of `capacity` has no room for.
    private func excess(_ rate: Double, over capacity: Double) -> Double {
        rate > capacity ? (rate - capacity) / rate : 0
    }

    private static func share(_ loss: Double) -> Double { min(max(loss, 1e-6), 1 - 1e-6) }
}

/// The natural logarithm of a positive number, to eight digits.
func naturalLogarithm(_ value: Double) -> Double {
    guard value > 0 else { return -.infinity }
    var significand = value.significand
    var exponent = Double(value.exponent)
    // Around 1, where the series is short.
    if significand > 1.414_213_562_373_095_1 {
        significand /= 2
        exponent += 1
    }
    let ratio = (significand - 1) / (significand + 1)
    let square = ratio * ratio
    let series =
        1 + square
        * (1 / 3.0 + square
            * (1 / 5.0 + square
                * (1 / 7.0 + square
                    * (1 / 9.0 + square / 11))))
    return exponent * 0.693_147_180_559_945_3 + 2 * ratio * series
}
