import RTP
import WorkerInterface

/// Send-side bandwidth estimator for the path to one subscriber.
///
/// It follows Google Congestion Control (draft-ietf-rmcat-gcc-02; Carlucci et al. 2017) with the
/// loss model, probing and application-limited rules that libwebrtc has added since. It takes under
/// 1 kB until something is sent, then 4 to 128 kB with the packets in flight.
struct BandwidthEstimator: ~Copyable {
    static let minimum = 10_000.0
    /// Interval of time-driven work, in nanoseconds.
    static let interval: Int64 = 200_000_000
    /// Nanoseconds after which a packet without feedback is forgotten.
    static let memory: Int64 = 3_000_000_000
    /// Nanoseconds without feedback after which the delay detectors are reset.
    static let staleness: Int64 = 2_000_000_000
    /// Nanoseconds without feedback, beyond two round trips, after which the rate is lowered; then
    /// the interval and the factor of each further reduction.
    static let silence: Int64 = 1_000_000_000
    static let silenceStep: Int64 = 500_000_000
    static let silenceFactor = 0.85
    static let pacingFactor = 2.5
    /// Length of the startup phase, in nanoseconds, in which the estimate follows the acknowledged
    /// rate at once.
    static let startLength: Int64 = 1_000_000_000
    /// Average loss that ends the startup phase.
    static let startLoss = 0.1
    /// Share of the estimate below which the allocation counts as held back by the size of its next
    /// step.
    static let steppedShare = 0.9
    /// Queuing delay in nanoseconds that counts as none, and the share of the acknowledged rate
    /// that is trusted while it is that short.
    static let shortWait = 15_000_000.0
    static let passing = 0.95

    var packets = SentPackets()
    var detectors = LazyBox<Detectors>()
    var rates: RateControl
    var load = OfferedLoad()
    var prober = Prober()
    var limits = ReceiverLimits()
    /// Frames that the last feedback message reported as arrived.
    var arrivedFrames = UncountedArray<ArrivedFrame>(capacity: 1)
    /// Whether that message showed that the subscriber's clock has leapt.
    var hasNewClock = false
    let maximum: Double
    var wanted = 0.0
    var allocated = 0.0
    var next = 0.0
    var isStarved = false
    /// Whether padding can be sent, so that probes show what the path carries.
    var isPadded = true
    /// Bits a second that the lowest layers need beside all else; it fits in beside the flags.
    var least: Float = 0
    /// Estimate in bits a second.
    var current: Double
    var cause = BandwidthExplanation.Cause.start
    /// Estimate that was last recorded as a change, and the time of that change.
    var told: Double
    var changed: Int64
    var roundTrip: Int64?
    var lastFeedback: Int64?
    var start = Start.silent
    var lastSent: Int64?
    var lastSilence: Int64 = .min / 2
    /// Estimate before missing feedback lowered it.
    var beforeSilence: Double?
    /// Place of the first missing packet for which no later packet is reported as arrived.
    var firstMissing: Int?
    var nextLook: Int64
    /// Send rate by whole seconds, for subscribers that report no arrival times.
    var second = SendRateMeter()

    /// Creates an estimator that starts at `startBitrate` and never exceeds `maximum` (bits a
    /// second).
    init(at now: Instant, startBitrate: Int, maximum: Int) {
        self.maximum = max(Double(maximum), Self.minimum)
        current = min(max(Double(startBitrate), Self.minimum), self.maximum)
        rates = RateControl(current)
        told = current
        changed = now.nanoseconds
        nextLook = now.nanoseconds
        load.setEstimate(current)
    }

    /// Notes a packet that left with this transport-wide sequence number.
    ///
    /// - Parameters:
    ///   - sequence: One more than in the packet before, wrapped.
    ///   - bytes: Its UDP payload plus 28 for IP and UDP.
    ///   - now: The time of sending.
    ///   - probe: The probe it was sent for, or along with.
    ///   - frame: The slot whose frame it ends.
    mutating func sent(
        _ sequence: UInt16,
        bytes: Int,
        at now: Instant,
        probe: ProbeID?,
        frame: OptionalIndex<HandleKind.Slot> = .none
    ) {
        let time = now.nanoseconds
        if !detectors.isMade { detectors.make(Detectors()) }
        packets.append(sequence, bytes: bytes, at: time, probe: probe?.rawValue ?? 0, frame: frame)
        second.note(bytes: bytes, at: time)
        lastSent = time
        if let probe {
            // Probe packets do not count as application load.
            prober.noteSent(probe, bytes: bytes)
        } else {
            load.note(bytes: bytes, at: time)
        }
    }

    /// Sets the demand, which bounds probing, the allocated bitrate, and the estimate that would
    /// allow one more layer (0 if none is held back), all in bits a second.
    ///
    /// `isStarved` says that video is in demand and none is allocated; `least` is what the lowest
    /// layers need, which a download that begins beside them does not take at once.
    mutating func setWanted(
        _ bitsPerSecond: Int,
        allocated: Int,
        next: Int = 0,
        least: Int = 0,
        isStarved: Bool = false,
        isPadded: Bool = true
    ) {
        wanted = Double(max(0, bitsPerSecond))
        self.isStarved = isStarved
        self.isPadded = isPadded
        prober.noteDemand(wanted)
        self.allocated = Double(max(0, allocated))
        self.next = Double(max(0, next))
        self.least = Float(max(0, least))
    }

    /// Does time-driven work that is due; calling it early does no harm.
    mutating func expire(at now: Instant) {
        let time = now.nanoseconds
        guard time >= nextLook else { return }
        nextLook = time &+ Self.interval
        load.note(bytes: 0, at: time)
        packets.prepare()
        endStartup(at: time)
        if reduceWithoutFeedback(at: time) { settle(.silence, at: time) }
        packets.forget(before: time &- Self.memory)
        if lastFeedback == nil, limits.hasEstimate {
            current = min(current, limits.cap(at: time))
        }
    }

    /// Time at which `expire` or `takeProbe` next has something to do, if ever.
    var deadline: Instant? {
        guard let lastSent else { return nil }
        let isIdle = packets.isEmpty && nextLook > lastSent &+ Self.memory
        switch (isIdle, probeDeadline) {
        case (true, nil): return nil
        case (true, let probe?): return Instant(nanoseconds: probe)
        case (false, nil): return Instant(nanoseconds: nextLook)
        case (false, let probe?): return Instant(nanoseconds: min(nextLook, probe))
        }
    }

    /// Time at which a probe or a trial may next be due, in nanoseconds.
    private var probeDeadline: Int64? {
        guard mayProbe else { return nil }
        guard isPadded else { return wanted > 0 ? detectors.value.trials.deadline(situation) : nil }
        return prober.deadline(situation, now: nextLook &- Self.interval)
    }

    /// Returns a probe to send now, if one is due.
    ///
    /// The estimate is raised now and then instead if no padding can be sent.
    mutating func takeProbe(at now: Instant) -> Probe? {
        let isAnswered = lastFeedback.map { now.nanoseconds &- $0 < Self.staleness } ?? true
        guard mayProbe, isAnswered || isSilent else {
            prober.refuse(at: now.nanoseconds)
            if detectors.isMade { detectors.value.trials.refuse(at: now.nanoseconds) }
            return nil
        }
        var situation = situation
        if !isAnswered {
            // The last signs of congestion are too old to count.
            situation.isCongested = false
            situation.waiting = 0
        }
        guard isPadded else {
            tryMore(situation, at: now.nanoseconds)
            return nil
        }
        return prober.take(situation, at: now.nanoseconds)
    }

    /// Raises the estimate if a trial is due.
    private mutating func tryMore(_ situation: Prober.Situation, at now: Int64) {
        guard wanted > 0, let rate = detectors.value.trials.take(situation, at: now) else { return }
        if rate > rates.estimate { rates.learn(rate, at: now) }
        detectors.value.losses.learn(rate)
        settle(.growth, at: now)
    }

    /// Whether the subscriber reports arrival times, which probes need; the first ones are sent to
    /// find that out.
    private var mayProbe: Bool { lastFeedback != nil || isPadded && !limits.hasEstimate }

    /// Whether nothing is under way that could tell of the path, while video waits for it: only a
    /// probe can.
    private var isSilent: Bool { isStarved && packets.isEmpty }

    /// Bandwidth estimate in bits a second, IP and UDP headers counted.
    var estimate: Int { Int(saturating: current) }

    /// Whether the startup phase has found no limit yet, so media may exceed the estimate.
    var isOpen: Bool {
        switch start {
        case .silent, .open: true
        case .bounded, .over: false
        }
    }

    /// Whether the path is saturated: packets sent now are queued for long, or lost.
    var isFull: Bool { detectors.isMade && detectors.value.isFull }

    /// Whether the path loses packets that are not in excess of its capacity.
    var losesWithoutQueue: Bool { detectors.isMade && detectors.value.losesWithoutQueue }

    /// Queuing delay of the last reported packet, in milliseconds.
    var waitMilliseconds: Int64 {
        detectors.isMade ? detectors.value.queue.latest / 1_000_000 : 0
    }

    /// Phases of learning a new path's bandwidth.
    enum Start {
        /// No feedback yet.
        case silent
        /// Feedback has shown no congestion so far.
        case open(since: Int64)
        /// Packets were queued, so the bottleneck rate is known and still being measured.
        case bounded(since: Int64)
        /// Startup has ended; regular congestion control applies.
        case over
    }

    /// Rate for the pacer, in bits a second.
    var pacingRate: Int { Int(saturating: Self.pacingFactor * max(current, allocated)) }

    var situation: Prober.Situation {
        guard detectors.isMade else {
            return situation(.normal, .free, waiting: 0, empties: true)
        }
        return situation(
            detectors.value.usage,
            detectors.value.losses.state,
            waiting: detectors.value.queue.excess,
            empties: detectors.value.queue.leastDelay < Self.shortWait
        )
    }

    private func situation(
        _ usage: PathUsage,
        _ loss: LossControl.State,
        waiting: Double,
        empties: Bool
    ) -> Prober.Situation {
        Prober.Situation(
            estimate: current,
            wanted: wanted,
            next: next,
            maximum: maximum,
            isCongested: usage == .over || loss == .decreasing || isQueuedAtStart,
            isRecovering: loss == .increasing,
            isApplicationLimited: load.isLimited,
            isStepped: isStarved || allocated > 0 && allocated < Self.steppedShare * current,
            isStarved: isStarved,
            waiting: waiting,
            empties: empties
        )
    }

    var isQueuedAtStart: Bool {
        if case .bounded = start { true } else { false }
    }

    /// Lowers the rate step by step while packets are in flight and no feedback arrives.
    private mutating func reduceWithoutFeedback(at now: Int64) -> Bool {
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

/// Send rate in bits a second, measured over whole seconds.
struct SendRateMeter {
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
    /// Explanation of the present estimate.
    var explanation: BandwidthExplanation {
        var told = BandwidthExplanation(
            estimate: estimate,
            cause: cause,
            changed: Instant(nanoseconds: changed),
            source: source,
            usage: .normal,
            acknowledged: nil,
            lossPermille: Int(saturating: Double(limits.loss ?? 0) * 1000),
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

/// Last packet of a frame that a subscriber's feedback reports as arrived.
struct ArrivedFrame: BitwiseCopyable {
    /// Slot that it was sent through.
    var slot: SlotIndex
    var sent: Instant
    /// Arrival in nanoseconds of the subscriber's clock.
    var arrived: Int64
}

extension BandwidthEstimator {
    /// Returns when the newest frame of a slot left whose arrival may still be reported, if it is
    /// newer than `time`.
    func newestFrame(of slot: SlotIndex, after time: Instant) -> Instant? {
        var place = packets.end
        while place > packets.oldest {
            place &-= 1
            let entry = packets[place]
            // Holes in the numbering have no time.
            guard entry.state != .unused else { continue }
            guard entry.time > time.nanoseconds else { return nil }
            if entry.frame.value == slot { return Instant(nanoseconds: entry.time) }
        }
        return nil
    }

    /// Returns the outcome of a packet; one of an outage counts as lost, one that is no longer kept
    /// as unused.
    func outcome(of sequence: UInt16) -> SentPackets.State {
        guard let place = packets.place(of: sequence) else { return .unused }
        let state = packets[place].state
        // Missing packets before the first that is to be judged were those of an outage.
        return state == .missing && place < firstMissing ?? .max ? .lost : state
    }

    /// Notes the arrival of a packet, if it ends a frame.
    mutating func noteFrame(_ entry: SentPackets.Entry, _ arrived: Int64) {
        guard let slot = entry.frame.value else { return }
        let sent = Instant(nanoseconds: entry.time)
        arrivedFrames.append(ArrivedFrame(slot: slot, sent: sent, arrived: arrived))
    }
}
