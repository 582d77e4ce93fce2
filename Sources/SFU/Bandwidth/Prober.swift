/// Decides when to probe, and at what rate.
///
/// At the start, and where much more is wanted than before, three and six times the estimate; as
/// long as a probe shows at least 70 % of what it was sent at, twice that; then whenever more is
/// wanted than the estimate allows and nothing speaks against it, and soon after a large drop that
/// may have been an accident.
struct Prober {
    /// Why a probe is sent.
    enum Reason: UInt8 { case initial, further, wanted, recovery }

    /// What the estimator knows that bears on probing.
    struct Situation {
        var estimate: Double
        /// What the allocation would send if it could.
        var wanted: Double
        var maximum: Double
        /// Whether queues grow or loss brings the rate down: no time for probes.
        var isCongested: Bool
        /// Whether loss bounds the rate, which recovers.
        var isRecovering: Bool
        var isApplicationLimited: Bool
        /// Whether what is sent cannot follow the estimate: the next step is larger than the rest.
        var isStepped = false
        /// How long packets wait on the way, in nanoseconds.
        var waiting: Double
    }

    private static let firstScales = (3.0, 6.0)
    private static let furtherScale = 2.0
    private static let furtherThreshold = 0.7
    /// Nanoseconds of a probe: long enough to mean something in arrival times of 250 µs.
    private static let duration = 20_000_000.0
    private static let minimumPackets = 5
    /// Nanoseconds between probes that ask whether what is wanted fits.
    private static let interval: Int64 = 3_000_000_000
    /// Nanoseconds without a drop after which even a sender that uses all it has may probe.
    ///
    /// Where flows share a path, a probe of the largest would show it nearly all of the path.
    private static let calm: Int64 = 10_000_000_000
    /// So many times what was wanted before is a new wish: a larger picture, not a livelier one.
    private static let newWish = 2.0
    private static let timeout: Int64 = 1_000_000_000
    /// A drop below this share, within `dropWindow`, is followed by a probe at `recovered` of it.
    private static let largeDrop = 0.66
    private static let recovered = 0.85
    private static let dropWindow: Int64 = 5_000_000_000

    /// A probe that is out, and one before it whose packets may still come in.
    private var clusters: (ProbeCluster?, ProbeCluster?) = (nil, nil)
    private var queued: (Double?, Double?) = (nil, nil)
    private var nextID: UInt8 = 1
    private var started = false
    private var lastProbe: Int64 = .min / 2
    /// Bytes of the newest probe that have not left yet.
    private var unsent = 0
    private var mayGoFurther = false
    private var beforeDrop = 0.0
    private var droppedAt: Int64 = .min / 2
    private var nextWanted: Int64 = .min / 2
    /// What is wanted, and whether that is so much more than it was that it is asked about at once.
    private var wish = 0.0
    private var isNewWish = false
    /// The last result, in bits a second.
    private(set) var lastResult: Double?

    /// When a probe may next be due.
    func deadline(_ situation: Situation, now: Int64) -> Int64? {
        guard started else { return nil }
        if queued.0 != nil { return now }
        guard wantsMore(situation) else { return nil }
        return max(isNewWish ? lastProbe : nextWanted, lastProbe &+ Self.timeout)
    }

    /// Notes what is wanted, in bits a second.
    mutating func noteWish(_ wanted: Double) {
        isNewWish = isNewWish || wanted > Self.newWish * wish
        wish = wanted
    }

    /// The next probe, if it is time for one.
    mutating func take(_ situation: Situation, at now: Int64) -> Probe? {
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
        // One at a time: a second one would be sent into the first one's queue.
        guard unsent <= 0 || now &- lastProbe >= Self.timeout else { return nil }
        if queued.0 == nil { askWhetherMoreFits(situation, at: now) }
        guard let rate = queued.0 else { return nil }
        queued = (queued.1, nil)
        return begin(rate, situation, at: now)
    }

    /// Notes a packet of a probe that left.
    mutating func noteSent(_ id: ProbeID, bytes: Int) {
        if clusters.0?.probe.id == id { unsent &-= bytes }
    }

    /// Notes a packet that arrived, and gives the rate that its probe has shown by now.
    mutating func noteArrival(_ id: UInt8, bytes: Int, sent: Int64, arrived: Int64) -> Double? {
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

    /// Forgets when packets of probes arrived: what comes now is told by another clock.
    mutating func forgetArrivals() {
        clusters.0?.forgetArrivals()
        clusters.1?.forgetArrivals()
    }

    /// Goes on from a result: further up where the path gave nearly all that was sent.
    mutating func noteResult(_ rate: Double, _ situation: Situation, at now: Int64) {
        lastResult = rate
        let sentAt = Double(clusters.0?.probe.bitsPerSecond ?? .max)
        guard mayGoFurther, rate >= Self.furtherThreshold * sentAt, queued.0 == nil,
            wantsMore(situation)
        else { return }
        queue(rate * Self.furtherScale)
    }

    /// What was to be asked could not be, and may be now: the next question need not wait its turn.
    mutating func resume() { nextWanted = .min / 2 }

    /// Notes that the estimate fell.
    mutating func noteDrop(from before: Double, to after: Double, at now: Int64) {
        if now &- droppedAt > Self.dropWindow { beforeDrop = before }
        beforeDrop = max(beforeDrop, before)
        droppedAt = now
        mayGoFurther = false
        isNewWish = false
        queued = (nil, nil)
        nextWanted = max(nextWanted, now &+ Self.interval)
        if after < Self.largeDrop * beforeDrop { nextWanted = now &+ Self.timeout }
    }

    private func isCalm(_ situation: Situation, at now: Int64) -> Bool {
        let calm = situation.isStepped ? Self.interval : Self.calm
        return now &- droppedAt > calm && situation.waiting < BandwidthEstimator.shortWait
    }

    private func wantsMore(_ situation: Situation) -> Bool {
        situation.estimate < min(situation.wanted, situation.maximum)
    }

    private mutating func queue(_ rate: Double) {
        if queued.0 == nil { queued.0 = rate } else { queued.1 = rate }
    }

    /// Asks anew for all that is wanted.
    private mutating func begin(from estimate: Double) {
        isNewWish = false
        queue(estimate * Self.firstScales.0)
        queue(estimate * Self.firstScales.1)
    }

    private mutating func askWhetherMoreFits(_ situation: Situation, at now: Int64) {
        guard started, isNewWish || now >= nextWanted, now &- lastProbe >= Self.timeout,
            wantsMore(situation), situation.isApplicationLimited || isCalm(situation, at: now)
        else { return }
        nextWanted = now &+ Self.interval
        mayGoFurther = true
        if isNewWish { return begin(from: situation.estimate) }
        let isAfterLargeDrop =
            now &- droppedAt < Self.dropWindow
            && situation.estimate < Self.largeDrop * beforeDrop
        if isAfterLargeDrop {
            queue(beforeDrop * Self.recovered)
            beforeDrop = 0
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
        // Less than the estimate and a little more tells nothing new.
        guard bounded > 1.05 * situation.estimate else { return nil }
        let probe = Probe(
            id: ProbeID(rawValue: nextID),
            bitsPerSecond: Int(saturating: bounded),
            bytes: max(Int(saturating: bounded * Self.duration / 8e9), Self.minimumPackets * 100),
            minimumPackets: Self.minimumPackets
        )
        nextID = nextID == .max ? 1 : nextID + 1
        clusters = (ProbeCluster(probe), clusters.0)
        lastProbe = now
        unsent = probe.bytes
        return probe
    }
}
