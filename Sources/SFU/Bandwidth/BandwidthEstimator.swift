import RTP
import WorkerInterface

/// Send-side congestion control for one viewer: how many bits a second its path carries now.
///
/// After Google Congestion Control (draft-ietf-rmcat-gcc-02; Carlucci et al. 2017) with the
/// loss model, probing and application-limited rules that libwebrtc has added since. Under 1 kB
/// until something is sent; 4 to 128 kB with what is in flight.
struct BandwidthEstimator: ~Copyable {
    static let minimum = 10_000.0
    /// Nanoseconds between looks at what time alone changes.
    static let interval: Int64 = 200_000_000
    /// Nanoseconds after which a packet that nothing was heard of is forgotten.
    static let memory: Int64 = 3_000_000_000
    /// Nanoseconds without feedback after which the detectors start afresh.
    static let staleness: Int64 = 2_000_000_000
    /// Nanoseconds of silence, beyond two round trips, that lower the rate, and how far it goes
    /// down for each `silenceStep` more.
    static let silence: Int64 = 1_000_000_000
    static let silenceStep: Int64 = 500_000_000
    static let silenceFactor = 0.85
    static let pacingFactor = 2.5
    /// Nanoseconds of reports at first in which what comes through is believed at once.
    static let startLength: Int64 = 1_000_000_000
    /// Loss that ends this.
    static let startLoss = 0.1
    /// Below this share of the estimate what is allocated is as much as fits of steps that are
    /// larger than what is left.
    static let steppedShare = 0.9
    /// Nanoseconds of waiting that are as good as none, and what is believed of sound that comes
    /// through like that.
    static let shortWait = 15_000_000.0
    static let passing = 0.95

    var packets = SentPackets()
    var detectors = LaterBox<Detectors>()
    var rates: RateControl
    var load = OfferedLoad()
    var prober = Prober()
    var limits = ReceiverLimits()
    let maximum: Double
    var wanted = 0.0
    var allocated = 0.0
    var isStarved = false
    /// The estimate in bits a second.
    var current: Double
    var cause = BandwidthExplanation.Cause.start
    /// The estimate that was last told of as a change, and when.
    var told: Double
    var changed: Int64
    var roundTrip: Int64?
    var lastFeedback: Int64?
    var start = Start.silent
    var lastSent: Int64?
    var lastSilence: Int64 = .min / 2
    /// What silence has lowered, as it was.
    var beforeSilence: Double?
    /// The place of the first packet that is missing and was followed by none that came.
    var firstMissing: Int?
    var nextLook: Int64
    /// Bytes of the second under way, and the rate of the one before: for viewers without arrivals.
    var second = SentSecond()

    /// Starts at `startBitrate`, and never goes beyond `maximum` (bits a second).
    init(at now: Instant, startBitrate: Int, maximum: Int) {
        self.maximum = max(Double(maximum), Self.minimum)
        current = min(max(Double(startBitrate), Self.minimum), self.maximum)
        rates = RateControl(current)
        told = current
        changed = now.nanoseconds
        nextLook = now.nanoseconds
        load.setEstimate(current)
    }

    /// A packet with this transport-wide number left.
    ///
    /// - Parameters:
    ///   - sequence: One more than in the packet before, wrapped.
    ///   - bytes: Its UDP payload plus 28 for IP and UDP.
    ///   - now: When it left.
    ///   - probe: The probe it was sent for, or along with.
    mutating func sent(_ sequence: UInt16, bytes: Int, at now: Instant, probe: ProbeID?) {
        let time = now.nanoseconds
        if !detectors.isMade { detectors.make(Detectors()) }
        packets.append(sequence, bytes: bytes, at: time, probe: probe?.rawValue ?? 0)
        second.note(bytes: bytes, at: time)
        lastSent = time
        if let probe {
            // What a probe adds is no load of the application's.
            prober.noteSent(probe, bytes: bytes)
        } else {
            load.note(bytes: bytes, at: time)
        }
    }

    /// What the allocation would send if it could, which bounds probing, and what it sends now;
    /// `isStarved` says that this is no video at all, though some is wanted.
    mutating func setWanted(_ bitsPerSecond: Int, allocated: Int, isStarved: Bool = false) {
        wanted = Double(max(0, bitsPerSecond))
        self.isStarved = isStarved
        prober.noteWish(wanted)
        self.allocated = Double(max(0, allocated))
    }

    /// Does what time alone makes due; early is no harm.
    mutating func expire(at now: Instant) {
        let time = now.nanoseconds
        guard time >= nextLook else { return }
        nextLook = time &+ Self.interval
        load.note(bytes: 0, at: time)
        packets.prepare()
        leaveStart(at: time)
        if heedSilence(at: time) { settle(.silence, at: time) }
        packets.forget(before: time &- Self.memory)
        if lastFeedback == nil, limits.hasEstimate {
            current = min(current, limits.cap(at: time))
        }
    }

    /// When `expire` or `takeProbe` next has something to do, if ever.
    var deadline: Instant? {
        guard let lastSent else { return nil }
        let isIdle = packets.isEmpty && nextLook > lastSent &+ Self.memory
        let probe = prober.deadline(situation, now: nextLook &- Self.interval)
        switch (isIdle, probe) {
        case (true, nil): return nil
        case (true, let probe?): return Instant(nanoseconds: probe)
        case (false, nil): return Instant(nanoseconds: nextLook)
        case (false, let probe?): return Instant(nanoseconds: min(nextLook, probe))
        }
    }

    /// A probe to send now.
    mutating func takeProbe(at now: Instant) -> Probe? {
        // Without arrival times a probe tells nothing; the first ones ask whether there are any.
        let isAnswered = lastFeedback.map { now.nanoseconds &- $0 < Self.staleness } ?? true
        guard isAnswered, lastFeedback != nil || !limits.hasEstimate else { return nil }
        return prober.take(situation, at: now.nanoseconds)
    }

    /// Bits a second that the path carries, IP and UDP headers counted.
    var estimate: Int { Int(saturating: current) }

    /// Whether nothing is known yet that speaks against sending more than the estimate.
    var isOpen: Bool {
        switch start {
        case .silent, .open: true
        case .bounded, .over: false
        }
    }

    /// Whether what is sent now has to wait long on the way, or is lost.
    var isFull: Bool { detectors.isMade && detectors.value.isFull }

    /// How long the last packet that was reported waited on the way, in milliseconds.
    var waitMilliseconds: Int64 {
        detectors.isMade ? detectors.value.queue.latest / 1_000_000 : 0
    }

    /// How a path is got to know.
    enum Start {
        /// Nothing was reported yet.
        case silent
        /// All that is sent comes through so far.
        case open(since: Int64)
        /// It had to queue, so the path's rate is known, and is measured on.
        case bounded(since: Int64)
        /// From now on it is felt for.
        case over
    }

    /// Bits a second at which a pacer should let packets out.
    var pacingRate: Int { Int(saturating: Self.pacingFactor * max(current, allocated)) }

    var situation: Prober.Situation {
        guard detectors.isMade else { return situation(.normal, .free, waiting: 0) }
        return situation(
            detectors.value.usage,
            detectors.value.losses.state,
            waiting: detectors.value.queue.delay
        )
    }

    private func situation(
        _ usage: PathUsage,
        _ loss: LossControl.State,
        waiting: Double
    ) -> Prober.Situation {
        Prober.Situation(
            estimate: current,
            wanted: wanted,
            maximum: maximum,
            isCongested: usage == .over || loss == .decreasing || isQueuedAtStart,
            isRecovering: loss == .increasing,
            isApplicationLimited: load.isLimited,
            isStepped: isStarved || allocated > 0 && allocated < Self.steppedShare * current,
            waiting: waiting
        )
    }

    var isQueuedAtStart: Bool {
        if case .bounded = start { true } else { false }
    }

    /// Less is sent, step by step, while nothing is heard of what was sent.
    private mutating func heedSilence(at now: Int64) -> Bool {
        guard let lastFeedback, !packets.isEmpty, let lastSent, lastSent > lastFeedback else {
            return false
        }
        let patience = Self.silence &+ 2 &* (roundTrip ?? 0)
        let oldest = packets[packets.oldest].time
        guard now &- max(lastFeedback, oldest) > patience,
            now &- lastSilence >= Self.silenceStep
        else { return false }
        lastSilence = now
        let before = current
        if beforeSilence == nil { beforeSilence = before }
        rates.limit(to: max(current * Self.silenceFactor, Self.minimum))
        prober.noteDrop(from: before, to: rates.estimate, at: now)
        return true
    }
}

/// Bits a second that were sent, by whole seconds.
struct SentSecond {
    private var start: Int64?
    private var bytes = 0
    private(set) var rate = 0.0

    mutating func note(bytes size: Int, at now: Int64) {
        let begin = start ?? now
        if start == nil { start = now }
        if now &- begin >= 1_000_000_000 {
            rate = Double(bytes) * 8e9 / Double(now &- begin)
            start = now
            bytes = 0
        }
        bytes &+= size
    }
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
