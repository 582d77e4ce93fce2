/// Loss-based rate control, which finds the rate above which packets are lost for lack of capacity.
///
/// Its model has two unknowns: the inherent loss, which occurs at any rate (radio, policing), and a
/// capacity beyond which all excess is lost. As in current libwebrtc, the pair with the highest
/// likelihood under the losses of the last seconds is chosen. Hence 10 % of random loss limits the
/// rate far less than 10 % of overflow.
struct LossControl {
    enum State: UInt8 {
        /// Loss sets no limit: the delays decide.
        case free
        case decreasing, increasing
    }

    private struct Observation: BitwiseCopyable {
        /// Send rate in kbit/s.
        var rate: Float = 0
        var packets: Float = 0
        var lost: Float = 0
    }

    private struct Model {
        var inherent: Double
        /// Capacity in bits a second.
        var capacity: Double
    }

    private static let window = 20
    /// Least duration of an observation in nanoseconds, and its least number of packets.
    private static let length: Int64 = 250_000_000
    private static let fewestPackets: Float = 10
    private static let fewestObservations = 3
    /// Weight of an observation relative to the next newer one.
    private static let fading = 0.9
    private static let inherentFloor = 0.001
    /// Loss that is attributed to no rate, and the cost of loss beyond it.
    ///
    /// At a share p beyond it the rate is limited to `balance` / p bits a second. 10 % allows 2
    /// Mbit/s, 20 % allows 670 kbit/s.
    private static let tolerated = 0.05
    private static let balance = 100_000.0
    /// Share of the acknowledged rate below which the instant bound never reduces the rate.
    private static let kept = 0.85
    /// Credit of a capacity higher by a factor e in the log likelihood, for one packet.
    private static let optimism = 0.02
    private static let steadiness = 0.0002
    private static let optimismEnds = 0.2
    /// Limits on growth while loss bounds the rate: within one `increaseWindow`, and relative to
    /// the acknowledged rate.
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
    /// Average loss of the last seconds, weighted towards the newest.
    private(set) var averageLoss = 0.0

    /// Loss-based limit of the rate in bits a second; infinite while loss sets none.
    var limit: Double { state == .free ? .infinity : model.capacity }
    var inherentLoss: Double { model.inherent }

    /// Notes the outcome of a packet that left at `sent`.
    mutating func note(bytes size: Int, sent: Int64, isLost: Bool) {
        if started == nil { started = sent }
        ended = max(ended, sent)
        packets += 1
        bytes &+= size
        if isLost { lost += 1 }
    }

    /// Takes back one loss: the packet has arrived after all.
    mutating func takeBack() { lost = max(0, lost - 1) }

    /// Ends the current observation if it is long enough, and updates the limit.
    ///
    /// While the sender is application-limited, the acknowledged rate does not show the path's
    /// capacity.
    mutating func update(
        delayBased: Double,
        acknowledged: Double?,
        isApplicationLimited: Bool,
        floor: Double
    ) {
        guard let begin = started, packets >= Self.fewestPackets,
            ended &- begin >= Self.length
        else { return }
        // The last packet's own send time lies beyond the measured stretch.
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

    /// Takes a higher rate that a probe or a new path has shown, in bits a second.
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
        // The acknowledged rate was carried despite the loss.
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

    /// Returns a candidate for the capacity: the present one, a little more, a little less, the
    /// acknowledged rate, or the delay-based rate.
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
            // The loss does not call for less than the acknowledged rate.
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
        // With little loss and no further decrease, a higher rate may be tried.
        let isFalling = best.capacity < current.capacity
        state = isFalling || averageLoss > Self.tolerated ? .decreasing : .increasing
        guard ended &- windowStart >= Self.increaseWindow else { return }
        windowStart = ended
        windowLimit = best.capacity * Self.increase
    }

    /// Returns the rate with its growth limited while loss bounds it.
    private func slowed(_ rate: Double, from before: Double, _ acknowledged: Double?) -> Double {
        guard state != .free, rate > before else { return rate }
        var limit = windowLimit
        if let acknowledged { limit = min(limit, Self.lead * acknowledged) }
        return max(before, min(rate, limit))
    }

    /// Highest rate that the present average loss allows, in bits a second.
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

    /// Returns the inherent loss after one damped Newton step towards its most likely value.
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

    /// Returns the log likelihood of the last seconds' losses, plus a small credit for high
    /// capacity.
    ///
    /// Of capacities that explain the losses equally well, the credit prefers the highest.
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

    /// Returns the share of `rate` that exceeds `capacity`.
    private func excess(_ rate: Double, over capacity: Double) -> Double {
        rate > capacity ? (rate - capacity) / rate : 0
    }

    private static func share(_ loss: Double) -> Double { min(max(loss, 1e-6), 1 - 1e-6) }
}

/// Returns the natural logarithm of a positive number, to eight digits.
func naturalLogarithm(_ value: Double) -> Double {
    guard value > 0 else { return -.infinity }
    var significand = value.significand
    var exponent = Double(value.exponent)
    // The series converges fast around 1.
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
