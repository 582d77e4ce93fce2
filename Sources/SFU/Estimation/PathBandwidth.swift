import RTP
import WorkerInterface

/// Bandwidth estimation and pacing for one subscriber's path.
struct PathBandwidth: ~Copyable {
    /// Initial estimate in bits a second; probes raise it within the first second.
    static let startBitrate = 300_000
    static let maximumBitrate = 50_000_000
    /// Time from the first feedback until the first probes are answered; no video is paused before.
    static let settlingMilliseconds: Int64 = 3_000
    /// Least loss in receiver reports that counts, in 256ths, and the time for which it does.
    static let tellingLoss: UInt8 = 5
    static let lossMemoryMilliseconds: Int64 = 10_000
    /// Budget for retransmissions: its largest and least share of the estimate, the seconds of the
    /// largest share that may be sent at once, and a least burst in bytes.
    ///
    /// The least share applies while media leaves no more.
    private static let retransmissionShare = 0.5
    private static let leastRetransmissionShare = 0.25
    private static let retransmissionBurst = 0.25
    private static let leastRetransmissionBurst = 6_000.0
    /// Number of bursts that are paid back at most, after the estimate has fallen.
    private static let mostBursts = 2.0
    /// Milliseconds for which feedback waits to be sent, and a NACK does not, and the longest time
    /// for which a repetition counts as on its way.
    private static let feedbackWait: Int64 = 80
    private static let longestFlight: Int64 = 400
    /// Least nanoseconds between two timer runs; a timer that is always due would keep the worker
    /// busy.
    private static let shortestStep: Int64 = 500_000

    var estimator: BandwidthEstimator
    var pacer: Pacer
    private var lastLook: Instant?
    /// Probe of the packet last taken from the pacer.
    private var taken: ProbeID?
    /// Retransmitted bytes not yet recovered by the budget, and the time of the last update.
    private var repairs: (at: Instant, bytes: Double)?
    /// Packets that were lately repeated on this path.
    private var repeated = RecentRepeats()
    private var firstReport: Instant?
    /// Time of the last receiver report with loss that counts.
    private var lastLoss: Instant?

    /// Creates the state of a new path, with the highest estimate in bits a second.
    init(at now: Instant, maximum: Int = maximumBitrate) {
        estimator = BandwidthEstimator(
            at: now,
            startBitrate: Self.startBitrate,
            maximum: maximum
        )
        pacer = Pacer(at: now, bitsPerSecond: estimator.pacingRate)
    }

    /// Continues with the estimate that an earlier process had of the same path.
    mutating func resume(_ bitsPerSecond: Int, at now: Instant) {
        estimator = BandwidthEstimator(
            at: now,
            startBitrate: bitsPerSecond,
            maximum: Self.maximumBitrate
        )
        estimator.start = .over
        firstReport = now
        updatePacingRate(at: now)
    }

    /// Resets the estimate for a new network path.
    ///
    /// Neither the old path's capacity nor the losses at its end say anything about the new one.
    mutating func restart(at now: Instant) {
        let (wanted, allocated) = (estimator.wanted, estimator.allocated)
        let (next, least) = (estimator.next, estimator.least)
        let (isStarved, isPadded) = (estimator.isStarved, estimator.isPadded)
        estimator = BandwidthEstimator(
            at: now,
            startBitrate: Self.startBitrate,
            maximum: Self.maximumBitrate
        )
        estimator.setWanted(
            Int(saturating: wanted),
            allocated: Int(saturating: allocated),
            next: Int(saturating: next),
            least: Int(saturating: Double(least)),
            isStarved: isStarved,
            isPadded: isPadded
        )
        firstReport = nil
        lastLoss = nil
        repairs = nil
        repeated = RecentRepeats()
        updatePacingRate(at: now)
    }

    mutating func takeNext(at now: Instant) -> Pacer.Item? {
        let item = pacer.next(at: now)
        taken = item?.probe
        return item
    }

    /// Removes and returns the next queued packet even if it is not due.
    mutating func takeAny() -> Pacer.Item? { pacer.removeAny() }

    /// Whether a video packet may leave now: the queue is empty, and the burst is not used up.
    ///
    /// Until the subscriber has sent feedback, nothing is delayed.
    mutating func hasRoom(at now: Instant) -> Bool {
        guard firstReport != nil else { return true }
        return pacer.isEmpty && pacer.budget(at: now) > 0
    }

    /// Outcome of queuing a packet.
    enum Queued { case first, behind, full }

    /// Queues a video packet, identified by the caller's name for it.
    mutating func enqueue(_ name: UInt32, bytes: Int, at now: Instant) -> Queued {
        let isFirst = pacer.isEmpty
        guard pacer.enqueue(name, bytes: bytes, class: .video, at: now) else { return .full }
        return isFirst ? .first : .behind
    }

    /// Sets the pacing rate from the present estimate.
    mutating func updatePacingRate(at now: Instant) { pacer.setRate(estimator.pacingRate, at: now) }

    /// Whether the last repetition of a packet may still be on its way to the subscriber.
    func isRepeated(_ number: SequenceNumber, of slot: SlotIndex, at now: Instant) -> Bool {
        let roundTrip = (estimator.roundTrip ?? 0) / 1_000_000
        let flight = min(roundTrip &- Self.feedbackWait, Self.longestFlight)
        return flight > 0
            && repeated.contains(number, of: slot, within: flight, by: estimator, at: now)
    }

    /// Notes that a packet was repeated, as the packet with this transport-wide number, if any.
    mutating func noteRepeat(
        of number: SequenceNumber,
        of slot: SlotIndex,
        as copy: UInt16?,
        at now: Instant
    ) {
        repeated.note(number, of: slot, as: copy, at: now)
    }

    /// Returns a packet whose last repetition was lost, by its slot's offset and its number.
    ///
    /// `place` is below `RecentRepeats.capacity`.
    mutating func lostRepeat(at place: Int) -> (slot: Int, number: SequenceNumber)? {
        repeated.lost(at: place, by: estimator)
    }

    /// Returns whether one more retransmission fits beside the media; if so, counts it.
    ///
    /// Retransmissions must not refill a path whose congestion caused the loss. They get the part
    /// of the estimate that media leaves unused, within a quarter and a half of the estimate, and
    /// at once a quarter of a second of half of it. A receiver that still lacks the packet sends
    /// another NACK.
    mutating func takeRetransmission(bytes: Int, at now: Instant) -> Bool {
        guard let estimate = usableEstimate(at: now) else { return true }
        let most = Double(estimate) / 8 * Self.retransmissionShare
        let least = Double(estimate) / 8 * Self.leastRetransmissionShare
        let rate = min(max((Double(estimate) - estimator.allocated) / 8, least), most)
        let passed = repairs.map { Double(now.nanoseconds(since: $0.at)) / 1e9 } ?? 0
        let burst = max(most * Self.retransmissionBurst, Self.leastRetransmissionBurst)
        // Bytes sent while the path counted as wide are not paid back for long on a narrow one.
        let owed = min(repairs?.bytes ?? 0, Self.mostBursts * burst)
        let debt = max(0, owed - passed * rate)
        let isFree = debt <= burst
        repairs = (at: now, bytes: isFree ? debt + Double(bytes) : debt)
        return isFree
    }

    /// Copies to send of each retransmission.
    ///
    /// Two on a path that loses much although it is not full: the one may well be lost, too, and
    /// the receiver asks again only a round trip later.
    var retransmissionCopies: Int { estimator.losesWithoutQueue ? 2 : 1 }

    /// Notes a packet that left; `waited` says that it was queued in the pacer, which has counted
    /// it.
    ///
    /// `frame` is the slot whose frame it ends.
    mutating func sent(
        _ sequence: UInt16,
        bytes: Int,
        waited: Bool,
        frame: OptionalIndex<HandleKind.Slot>,
        at now: Instant
    ) {
        // The last packet of a probe has already ended it at the pacer.
        let probe = waited ? taken : pacer.currentProbe
        if !waited { pacer.left(bytes: bytes, at: now) }
        estimator.sent(sequence, bytes: bytes, at: now, probe: probe, frame: frame)
    }

    mutating func receive(_ feedback: borrowing TransportFeedback, at now: Instant) {
        if firstReport == nil { firstReport = now }
        estimator.receive(feedback, at: now)
    }

    mutating func receiveREMB(
        _ bitsPerSecond: UInt64,
        of sources: EstimatedSources,
        at now: Instant
    ) {
        estimator.receiveREMB(Int(clamping: min(bitsPerSecond, 1 << 40)), of: sources, at: now)
    }

    mutating func receiveLoss(fraction: UInt8, roundTripMilliseconds: Int?, at now: Instant) {
        if fraction >= Self.tellingLoss { lastLoss = now }
        estimator.receiveLoss(
            fraction: fraction,
            roundTripMilliseconds: roundTripMilliseconds,
            at: now
        )
    }

    /// Returns the usable bandwidth in bits a second; `nil` if no limit is known.
    ///
    /// A subscriber that reports no arrival times gets all layers until it loses packets. Its own
    /// estimate (REMB) is bounded by the received bitrate and would keep that low for ever.
    func usableEstimate(at now: Instant) -> Int? {
        if firstReport != nil { return estimator.isOpen ? nil : estimator.estimate }
        if let lastLoss, now.milliseconds(since: lastLoss) < Self.lossMemoryMilliseconds {
            return estimator.estimate
        }
        return nil
    }

    /// Whether packets wait in the pacer.
    func holdsPackets() -> Bool { !pacer.isEmpty }

    /// Returns the time since which the oldest packet waits in the pacer, and the round-trip time
    /// in nanoseconds, if known.
    func waiting() -> (since: Instant?, roundTrip: Int64?) {
        (pacer.waitingSince, estimator.roundTrip)
    }

    /// Returns when the newest frame of a slot left whose arrival may still be reported, if it is
    /// newer than `time`.
    func newestFrame(of slot: SlotIndex, after time: Instant) -> Instant? {
        estimator.newestFrame(of: slot, after: time)
    }

    /// Whether packets sent now are queued for long, or lost.
    func isFull() -> Bool { estimator.isFull }

    /// Returns the queuing delay of the last reported packet, in milliseconds.
    func waitMilliseconds() -> Int64 { estimator.waitMilliseconds }

    /// Whether the estimate has had time to settle since the first feedback.
    func isSettled(at now: Instant) -> Bool {
        guard let first = firstReport else { return false }
        return now.milliseconds(since: first) >= Self.settlingMilliseconds
    }

    /// Does time-driven work that is due.
    mutating func expire(at now: Instant) {
        lastLook = now
        estimator.expire(at: now)
    }

    /// Returns the time of the next work, if any.
    func deadline(at now: Instant) -> Instant? {
        var next = pacer.deadline(at: now)
        if let due = estimator.deadline { next = min(next ?? due, due) }
        guard let next, let lastLook else { return next }
        return max(next, lastLook.advanced(nanoseconds: Self.shortestStep))
    }
}

extension TransportConfiguration {
    /// Whether the subscriber negotiated bandwidth feedback: REMB or transport-wide congestion
    /// control.
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
