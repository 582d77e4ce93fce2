import RTP
import WorkerInterface

/// What is known of how much one viewer's path carries, and whether it can be relied on.
struct PathBandwidth: ~Copyable {
    /// Bits a second before anything is known; probes raise it within the first second.
    static let startBitrate = 300_000
    static let maximumBitrate = 50_000_000
    /// By then the first probes are answered: before, no video is taken off.
    static let settlingMilliseconds: Int64 = 3_000
    /// Loss in receiver reports that tells something, in 256ths, and for how long.
    static let tellingLoss: UInt8 = 5
    static let lossMemoryMilliseconds: Int64 = 10_000
    /// Of the estimate, for retransmissions: at most, and where media leaves no more; seconds of
    /// that at once; bytes, where that is little.
    private static let retransmissionShare = 0.5
    private static let leastRetransmissionShare = 0.25
    private static let retransmissionBurst = 0.25
    private static let leastRetransmissionBurst = 6_000.0
    /// Nanoseconds between two looks: a timer that is always due would keep the worker busy.
    private static let shortestStep: Int64 = 500_000

    var estimator: BandwidthEstimator
    var pacer: Pacer
    private var lastLook: Instant?
    /// The probe of the packet that was taken from the pacer last.
    private var taken: ProbeID?
    /// What retransmissions have taken and the path has not made up for.
    private var repairs: (at: Instant, bytes: Double)?
    private var firstReport: Instant?
    /// When a receiver report last told of loss that matters.
    private var lastLoss: Instant?

    init(at now: Instant) {
        estimator = BandwidthEstimator(
            at: now,
            startBitrate: Self.startBitrate,
            maximum: Self.maximumBitrate
        )
        pacer = Pacer(at: now, bitsPerSecond: estimator.pacingRate)
    }

    /// Media goes another way from now on, of which nothing is known: neither what the old one
    /// carried nor what was lost on it at its end says how much this one carries.
    mutating func restart(at now: Instant) {
        let (wanted, allocated) = (estimator.wanted, estimator.allocated)
        let isStarved = estimator.isStarved
        estimator = BandwidthEstimator(
            at: now,
            startBitrate: Self.startBitrate,
            maximum: Self.maximumBitrate
        )
        estimator.setWanted(
            Int(saturating: wanted),
            allocated: Int(saturating: allocated),
            isStarved: isStarved
        )
        firstReport = nil
        lastLoss = nil
        repairs = nil
        keepPace(at: now)
    }

    mutating func takeNext(at now: Instant) -> Pacer.Item? {
        let item = pacer.next(at: now)
        taken = item?.probe
        return item
    }

    /// Takes out one that waits, whether it may leave or not.
    mutating func takeAny() -> Pacer.Item? { pacer.removeAny() }

    /// Whether a packet of video may leave now: nothing waits before it, and the path is not full.
    ///
    /// Where nothing is known of the path nobody has to wait.
    mutating func hasRoom(at now: Instant) -> Bool {
        guard firstReport != nil else { return true }
        return pacer.isEmpty && pacer.budget(at: now) > 0
    }

    /// What became of a packet that was to wait.
    enum Queued { case first, behind, full }

    /// Lets a packet of video wait, by the name that its owner gave it.
    mutating func enqueue(_ name: UInt32, bytes: Int, at now: Instant) -> Queued {
        let isFirst = pacer.isEmpty
        guard pacer.enqueue(name, bytes: bytes, class: .video, at: now) else { return .full }
        return isFirst ? .first : .behind
    }

    /// Lets packets out as fast as the estimate now says.
    mutating func keepPace(at now: Instant) { pacer.setRate(estimator.pacingRate, at: now) }

    /// Whether one more retransmission fits beside the media; if so, it is counted.
    ///
    /// What a path has lost because it is full must not fill it again: retransmissions get what
    /// media leaves of the estimate, and a quarter of a second of half of it at once. Who lacks the
    /// packet asks again.
    mutating func takeRetransmission(bytes: Int, at now: Instant) -> Bool {
        guard let estimate = usableEstimate(at: now) else { return true }
        let most = Double(estimate) / 8 * Self.retransmissionShare
        let least = Double(estimate) / 8 * Self.leastRetransmissionShare
        let rate = min(max((Double(estimate) - estimator.allocated) / 8, least), most)
        let passed = repairs.map { Double(now.nanoseconds(since: $0.at)) / 1e9 } ?? 0
        let debt = max(0, (repairs?.bytes ?? 0) - passed * rate)
        let isFree = debt <= max(most * Self.retransmissionBurst, Self.leastRetransmissionBurst)
        repairs = (at: now, bytes: isFree ? debt + Double(bytes) : debt)
        return isFree
    }

    /// Notes a packet that left; `waited` where the pacer had it, and counts it already.
    mutating func sent(_ sequence: UInt16, bytes: Int, waited: Bool, at now: Instant) {
        // The last packet of a probe ends it at the pacer before it leaves.
        let probe = waited ? taken : pacer.currentProbe
        if !waited { pacer.left(bytes: bytes, at: now) }
        estimator.sent(sequence, bytes: bytes, at: now, probe: probe)
    }

    mutating func receive(_ feedback: borrowing TransportFeedback, at now: Instant) {
        if firstReport == nil { firstReport = now }
        estimator.receive(feedback, at: now)
    }

    mutating func receiveREMB(_ bitsPerSecond: UInt64, at now: Instant) {
        estimator.receiveREMB(Int(clamping: min(bitsPerSecond, 1 << 40)), at: now)
    }

    mutating func receiveLoss(fraction: UInt8, roundTripMilliseconds: Int?, at now: Instant) {
        if fraction >= Self.tellingLoss { lastLoss = now }
        estimator.receiveLoss(
            fraction: fraction,
            roundTripMilliseconds: roundTripMilliseconds,
            at: now
        )
    }

    /// Bits a second that the path carries; `nil` where nothing tells.
    ///
    /// A viewer that does not report arrivals gets all, until it loses packets: its own estimate
    /// (REMB) is bounded by what it is sent, and would keep that down for ever.
    func usableEstimate(at now: Instant) -> Int? {
        if firstReport != nil { return estimator.isOpen ? nil : estimator.estimate }
        if let lastLoss, now.milliseconds(since: lastLoss) < Self.lossMemoryMilliseconds {
            return estimator.estimate
        }
        return nil
    }

    /// Whether what is sent now has to wait long on the way, or is lost.
    func isFull() -> Bool { estimator.isFull }

    /// How long the last packet that was reported waited on the way, in milliseconds.
    func waitMilliseconds() -> Int64 { estimator.waitMilliseconds }

    /// Whether the estimate is more than a beginning.
    func isSettled(at now: Instant) -> Bool {
        guard let first = firstReport else { return false }
        return now.milliseconds(since: first) >= Self.settlingMilliseconds
    }

    /// Does what time alone makes due.
    mutating func expire(at now: Instant) {
        lastLook = now
        estimator.expire(at: now)
    }

    /// When something is to be done, if ever.
    func deadline(at now: Instant) -> Instant? {
        var next = pacer.deadline(at: now)
        if let due = estimator.deadline { next = min(next ?? due, due) }
        guard let next, let lastLook else { return next }
        return max(next, lastLook.advanced(nanoseconds: Self.shortestStep))
    }
}

extension TransportConfiguration {
    /// Whether the viewer agreed to say how what it is sent arrives.
    var reportsOnItsPath: Bool {
        slots.contains { slot in
            slot.formats.contains { format in
                format.feedback.contains(.remb)
                    || format.feedback.contains(.transportWide)
                        && slot.extensions[.transportSequenceNumber] != 0
            }
        }
    }
}
