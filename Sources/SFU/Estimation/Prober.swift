/// Scheduler of bandwidth probes.
///
/// It probes at three and six times the estimate at the start and when demand has grown much; on a
/// path whose limit was met before, at three times. While a probe measures at least 70 % of its
/// send rate, the next one goes at twice the result. Later it probes when demand exceeds the
/// estimate and nothing indicates congestion, and soon after a large drop that may have been an
/// accident.
struct Prober {
    /// Reason of a probe.
    enum Reason: UInt8 { case initial, further, wanted, recovery }

    /// Estimator state that governs probing.
    struct Situation {
        var estimate: Double
        /// Demand of the allocation, in bits a second.
        var wanted: Double
        /// Estimate that would allow one more layer, in bits a second; 0 if none is held back.
        var next = 0.0
        var maximum: Double
        /// Whether queues grow or loss reduces the rate, which rules out probing.
        var isCongested: Bool
        /// Whether loss limits the rate and it is recovering.
        var isRecovering: Bool
        var isApplicationLimited: Bool
        /// Whether the allocation cannot use the estimate because its next step exceeds the
        /// remainder.
        var isStepped = false
        /// Whether video is in demand and none is allocated.
        var isStarved = false
        /// Queuing delay on the path, in nanoseconds.
        var waiting: Double
        /// Whether the queue empties all the same, now and then.
        var empties = true
    }

    private static let firstScales = (3.0, 6.0)
    private static let furtherScale = 2.0
    private static let furtherThreshold = 0.7
    /// Lengths of a probe in nanoseconds: the least is enough for arrival times with a resolution
    /// of 250 µs, the longest a burden on a path that does not carry it.
    private static let shortest = 20_000_000.0
    private static let longest = 250_000_000.0
    /// Queue in nanoseconds that a probe may leave on a path that carries just the estimate.
    private static let burden = 20_000_000.0
    /// Excess over the rate that the next layer needs.
    private static let margin = 1.1
    /// First step above an estimate that has been tried before.
    private static let firstStep = 1.5
    private static let minimumPackets = 5
    /// The same for a probe not far above the estimate, which has more time.
    private static let morePackets = 8
    /// Nanoseconds between probes for unmet demand.
    private static let interval: Int64 = 3_000_000_000
    /// Nanoseconds without a drop after which a sender that is not application-limited may probe,
    /// too.
    ///
    /// On a path shared by several flows, a probe by the largest would measure nearly all of the
    /// path.
    private static let calm: Int64 = 10_000_000_000
    /// Factor of growth from which demand is probed at once: a larger picture, not more motion.
    private static let demandJump = 2.0
    private static let mostLengthening = 4.0
    /// Nanoseconds between two looks while a probe is due and conditions forbid it.
    private static let lookInterval: Int64 = 20_000_000
    /// Doubt in a result from which the next probe is longer, and from which it needs another one
    /// that confirms it within so many nanoseconds.
    private static let muchDoubt = 0.07
    private static let someDoubt = 0.02
    private static let confirmation: Int64 = 2_000_000_000
    private static let timeout: Int64 = 1_000_000_000
    /// Ratio below which a drop is large, and the share of the old estimate that is then probed.
    ///
    /// Only drops within `dropWindow` nanoseconds count.
    private static let largeDrop = 0.66
    private static let recovered = 0.85
    private static let dropWindow: Int64 = 5_000_000_000

    /// Current probe, and the one before it, whose packets may still arrive.
    private var clusters: (ProbeCluster?, ProbeCluster?) = (nil, nil)
    private var queued: (Double?, Double?) = (nil, nil)
    private var nextID: UInt8 = 1
    private var started = false
    private var lastProbe: Int64 = .min / 2
    /// Time of the last look that found no probe to send.
    private var looked: Int64 = .min / 2
    /// Bytes of the newest probe still to be sent.
    private var unsent = 0
    private var mayGoFurther = false
    private var beforeDrop = 0.0
    /// Time of the last drop of the estimate; long ago if there was none.
    private var droppedAt: Int64 = .min / 2
    private var nextWanted: Int64 = .min / 2
    /// Demand in bits a second, and whether it has grown enough to be probed at once.
    private var demand = 0.0
    private var isDemandJump = false
    /// Factor on the length of the next probe, for paths on which arrivals scatter.
    private var lengthening = 1.0
    /// Probe that was judged last.
    private var judged: ProbeID?
    /// Result that another probe has to confirm, and its time.
    private var unconfirmed: (ProbeResult, Int64)?
    /// Last result in bits a second.
    private(set) var lastResult: Double?

    /// Returns the time at which a probe may next be due.
    func deadline(_ situation: Situation, now: Int64) -> Int64? {
        guard started else { return nil }
        let look = looked &+ Self.lookInterval
        if queued.0 != nil { return max(now, look) }
        guard wantsMore(situation) else { return nil }
        return max(isDemandJump ? lastProbe : nextWanted, lastProbe &+ Self.timeout, look)
    }

    /// Notes the demand, in bits a second.
    mutating func noteDemand(_ wanted: Double) {
        isDemandJump = isDemandJump || wanted > Self.demandJump * demand
        demand = wanted
    }

    /// Returns the next probe, if one is due.
    mutating func take(_ situation: Situation, at now: Int64) -> Probe? {
        let probe = next(situation, at: now)
        looked = probe == nil ? now : .min / 2
        return probe
    }

    /// Notes a look at a time at which no probe may be sent.
    mutating func refuse(at now: Int64) { looked = now }

    private mutating func next(_ situation: Situation, at now: Int64) -> Probe? {
        if !started {
            guard situation.wanted > 0 else { return nil }
            started = true
            mayGoFurther = true
            begin(from: situation.estimate)
            nextWanted = now &+ Self.interval
        }
        guard !situation.isCongested else {
            queued = (nil, nil)
            return nil
        }
        // Probes do not overlap: a second one would be sent into the first one's queue.
        guard unsent <= 0 || now &- lastProbe >= Self.timeout else { return nil }
        if queued.0 == nil { askWhetherMoreFits(situation, at: now) }
        guard let rate = queued.0 else { return nil }
        queued = (queued.1, nil)
        return begin(rate, situation, at: now)
    }

    /// Notes a probe packet that left.
    mutating func noteSent(_ id: ProbeID, bytes: Int) {
        if clusters.0?.probe.id == id { unsent &-= bytes }
    }

    /// Notes a probe packet that arrived; returns the result of its probe so far.
    mutating func noteArrival(
        _ id: UInt8,
        bytes: Int,
        sent: Int64,
        arrived: Int64
    ) -> ProbeResult? {
        if clusters.0?.probe.id.rawValue == id {
            clusters.0?.add(bytes: bytes, sent: sent, arrived: arrived)
            return clusters.0?.result
        }
        if clusters.1?.probe.id.rawValue == id {
            clusters.1?.add(bytes: bytes, sent: sent, arrived: arrived)
            return clusters.1?.result
        }
        return nil
    }

    /// Nanoseconds since the last probe began, which may have left a queue.
    func sinceProbe(at now: Int64) -> Int64 { now &- lastProbe }

    /// Discards arrival times of probes after the subscriber's clock has changed.
    mutating func forgetArrivals() {
        clusters.0?.forgetArrivals()
        clusters.1?.forgetArrivals()
    }

    /// Takes a result, and probes higher if the path delivered nearly all of the send rate.
    ///
    /// A result that the arrivals' scatter leaves open has to be confirmed by another probe: a
    /// machine on the path that stops for a moment holds packets and releases them all at once.
    ///
    /// - Returns: The rate in bits a second that the path carries; `nil` if it is not certain yet.
    mutating func noteResult(
        _ result: ProbeResult,
        _ situation: Situation,
        at now: Int64
    ) -> Double? {
        // Each probe is judged once, as soon as enough of it has arrived.
        guard judged != result.id else { return nil }
        judged = result.id
        lastResult = result.rate
        let sentAt = Double(clusters.0?.probe.bitsPerSecond ?? .max)
        let isLong = result.doubt > Self.muchDoubt
        lengthening = isLong ? min(2 * lengthening, Self.mostLengthening) : 1
        var rate = result.rate
        if result.doubt > Self.someDoubt, rate > situation.estimate {
            guard let (first, at) = unconfirmed, first.id != result.id,
                now &- at < Self.confirmation
            else {
                unconfirmed = (result, now)
                if queued.0 == nil { queue(min(sentAt, result.rate * Self.margin)) }
                // A viewer without a picture gets what is certain at once.
                let certain = rate * (1 - result.doubt)
                return situation.isStarved && certain > situation.estimate ? certain : nil
            }
            rate = min(first.rate, rate)
        }
        unconfirmed = nil
        guard mayGoFurther, rate >= Self.furtherThreshold * sentAt, queued.0 == nil,
            wantsMore(situation)
        else { return rate }
        queue(rate * Self.furtherScale)
        return rate
    }

    /// Allows the next probe at once, after conditions have prevented one.
    mutating func resume() { nextWanted = .min / 2 }

    /// Notes a drop of the estimate.
    mutating func noteDrop(from before: Double, to after: Double, at now: Int64) {
        if now &- droppedAt > Self.dropWindow { beforeDrop = before }
        beforeDrop = max(beforeDrop, before)
        droppedAt = now
        mayGoFurther = false
        isDemandJump = false
        queued = (nil, nil)
        nextWanted = max(nextWanted, now &+ Self.interval)
        if after < Self.largeDrop * beforeDrop { nextWanted = now &+ Self.timeout }
    }

    /// Whether a sender that is not application-limited may probe.
    ///
    /// If packets wait although the queue empties, it is jitter, or its own frames are a burden to
    /// the path, which probes would increase; only a sender that cannot grow needs them.
    private func isCalm(_ situation: Situation, at now: Int64) -> Bool {
        let isQuiet = situation.waiting < BandwidthEstimator.shortWait
        let isJitter = situation.isStepped && situation.empties && now &- lastProbe > Self.calm
        guard isQuiet || isJitter else { return false }
        return now &- droppedAt > (isQuiet && situation.isStepped ? Self.interval : Self.calm)
    }

    private func wantsMore(_ situation: Situation) -> Bool {
        situation.estimate < min(situation.wanted, situation.maximum)
    }

    private mutating func queue(_ rate: Double) {
        if queued.0 == nil { queued.0 = rate } else { queued.1 = rate }
        looked = .min / 2
    }

    /// Queues the first probes again, for the whole demand.
    ///
    /// On a path that has a limit, the higher one has to wait for the lower one's result: both at
    /// once would fill its queue.
    private mutating func begin(from estimate: Double) {
        isDemandJump = false
        queue(estimate * Self.firstScales.0)
        if droppedAt == .min / 2 { queue(estimate * Self.firstScales.1) }
    }

    private mutating func askWhetherMoreFits(_ situation: Situation, at now: Int64) {
        guard started, isDemandJump || now >= nextWanted, now &- lastProbe >= Self.timeout,
            wantsMore(situation), situation.isApplicationLimited || isCalm(situation, at: now)
        else { return }
        nextWanted = now &+ (situation.isStarved ? Self.timeout : Self.interval)
        mayGoFurther = true
        if isDemandJump { return begin(from: situation.estimate) }
        let isAfterLargeDrop =
            now &- droppedAt < Self.dropWindow
            && situation.estimate < Self.largeDrop * beforeDrop
        if isAfterLargeDrop {
            queue(beforeDrop * Self.recovered)
            beforeDrop = 0
        } else if situation.next > situation.estimate {
            // More than the next layer needs would only burden the path.
            let most = situation.isStarved ? Self.furtherScale : Self.firstStep
            let scale = min(Self.margin * situation.next / situation.estimate, most)
            queue(situation.estimate * scale)
        } else {
            queue(situation.estimate * Self.furtherScale)
        }
    }

    private mutating func begin(
        _ rate: Double,
        _ situation: Situation,
        at now: Int64
    ) -> Probe? {
        var limit = min(situation.maximum, 2 * situation.wanted)
        if situation.isRecovering { limit = min(limit, 1.5 * situation.estimate) }
        let bounded = min(rate, limit)
        // A probe barely above the estimate gives no new information.
        guard bounded > 1.05 * situation.estimate else { return nil }
        let packets =
            bounded > Self.furtherScale * situation.estimate
            ? Self.minimumPackets : Self.morePackets
        let probe = Probe(
            id: ProbeID(rawValue: nextID),
            bitsPerSecond: Int(saturating: bounded),
            bytes: max(
                Int(saturating: bounded * length(at: bounded, situation) / 8e9),
                packets * 100
            ),
            minimumPackets: packets
        )
        nextID = nextID == .max ? 1 : nextID + 1
        clusters = (ProbeCluster(probe), clusters.0)
        lastProbe = now
        unsent = probe.bytes
        return probe
    }

    /// Returns the length of a probe in nanoseconds: the nearer it is to the estimate, the longer
    /// it may last, and the better is its result.
    private func length(at rate: Double, _ situation: Situation) -> Double {
        let excess = max(rate - situation.estimate, 1)
        let usual = max(Self.burden * situation.estimate / excess, Self.shortest)
        let isNear = rate < Self.furtherScale * situation.estimate
        return min(isNear ? usual * lengthening : usual, Self.longest)
    }
}
