package import RTP
import WorkerInterface

/// Bandwidth of the path to another node.
///
/// Its estimator is that of a viewer's path, fed by reports on every datagram. But the estimate
/// limits nothing until the path has been full: most links carry far more than is ever wanted, and
/// nothing is delayed on them, and no bandwidth is spent on probes.
package struct LinkBandwidth: ~Copyable {
    /// Highest estimate, in bits a second.
    static let maximum = 10_000_000_000
    /// Time without a full path, while it carries all that is wanted, after which nothing is
    /// limited.
    static let calmMilliseconds: Int64 = 10_000
    /// Queuing delay from which a path counts as full: a viewer's may have more, but sound between
    /// nodes must not have to wait for what is then lost.
    static let longWaitMilliseconds: Int64 = 60
    /// Time for which a report tells of the present.
    static let freshMilliseconds: Int64 = 1_000
    /// Share of lost datagrams, in thousandths, from which a path without a queue counts as full.
    static let muchLossPermille = 200
    /// Pacing rate as a multiple of what the path carries, while it is full and otherwise.
    static let fullFactor = 0.8
    static let pacingFactor = 1.0
    /// Longest time that video waits, in nanoseconds: a keyframe that left faster would be in the
    /// way of the sound.
    static let patience: Int64 = 600_000_000
    /// IP and UDP headers of a datagram, in bytes.
    private static let headers = 28

    private var path: PathBandwidth
    /// Rate of everything but video.
    private var other = SendRateMeter()
    /// Time when the path was last full; `nil` while it limits nothing.
    private var fullAt: Instant?
    /// Time since which it carries all that is wanted.
    private var wholeSince: Instant?
    /// Reports in a row that found the path full, and the time of the last report.
    private var fullReports = 0
    private var reported: Instant?
    private var wanted = 0
    private var allocated = 0

    package init(at now: Instant) {
        path = PathBandwidth(at: now, maximum: Self.maximum)
        let rate = path.estimator.pacingRate
        path.pacer = Pacer(at: now, bitsPerSecond: rate, patience: Self.patience)
    }

    /// Bits a second that the path carries, all headers counted; `nil` while it limits nothing.
    package var limit: Int? {
        guard fullAt != nil else { return nil }
        let estimate = path.estimator.estimate
        // The estimate follows step by step; the rate at which a full path delivers is known.
        guard isFull, let delivered = path.estimator.explanation.acknowledged else {
            return estimate
        }
        return min(estimate, delivered)
    }

    /// Whether packets sent now are queued for long, or lost.
    package var isFull: Bool { fullReports > 1 }

    /// Bits a second of what is sent besides video.
    package var otherBitrate: Int { Int(saturating: other.rate) }

    /// Notes a datagram that left.
    ///
    /// - Parameters:
    ///   - counter: One more than that of the datagram before.
    ///   - bytes: Its length.
    ///   - otherBytes: The part of it that is neither video nor padding.
    ///   - waited: Whether it was taken from `takeNext`.
    ///   - now: The time of sending.
    package mutating func sent(
        _ counter: UInt64,
        bytes: Int,
        otherBytes: Int,
        waited: Bool,
        at now: Instant
    ) {
        if otherBytes > 0 { other.note(bytes: otherBytes &+ Self.headers, at: now.nanoseconds) }
        path.sent(
            UInt16(truncatingIfNeeded: counter),
            bytes: bytes &+ Self.headers,
            waited: waited,
            frame: .none,
            at: now
        )
    }

    /// Takes a report of the other node; returns whether it is well-formed.
    package mutating func receive(report: [UInt8], at now: Instant) -> Bool {
        var blocks = RTCPBlocks(report.span)
        guard let block = blocks.next(), let feedback = try? TransportFeedback(block) else {
            return false
        }
        path.receive(feedback, at: now)
        let told = path.estimator.explanation
        let losesMuch =
            path.isFull()
            && (!path.estimator.losesWithoutQueue || told.lossPermille > Self.muchLossPermille)
        let isFull = losesMuch || path.waitMilliseconds() > Self.longWaitMilliseconds
        fullReports = isFull ? fullReports &+ 1 : 0
        reported = now
        review(at: now)
        return true
    }

    /// Sets what all nodes below want, what of it is sent, and the estimate that would allow more
    /// (0 if nothing is withheld), in bits a second.
    package mutating func setDemand(_ wanted: Int, allocated: Int, next: Int) {
        self.wanted = wanted
        self.allocated = allocated
        path.estimator.setWanted(
            // Encodings that come back have to fit with something to spare.
            limit == nil ? 0 : max(wanted, next) / 5 * 6,
            allocated: allocated,
            next: next,
            isStarved: limit != nil && allocated <= otherBitrate && wanted > allocated
        )
    }

    private mutating func review(at now: Instant) {
        setPacingRate(at: now)
        // One report alone may be that of a host which stood still for a moment.
        if fullReports > 1 { fullAt = now }
        guard let full = fullAt, allocated >= wanted else { return wholeSince = nil }
        let since = max(full, wholeSince ?? now)
        wholeSince = since
        if now.milliseconds(since: since) >= Self.calmMilliseconds { fullAt = nil }
    }

    /// Sound is not paced, but it counts.
    private mutating func setPacingRate(at now: Instant) {
        let carried = Double(limit ?? max(path.estimator.estimate, allocated))
        let rate = carried * (isFull ? Self.fullFactor : Self.pacingFactor)
        path.pacer.setRate(Int(saturating: rate), at: now)
    }

    /// Whether a video packet may leave now, as nothing waits and the burst is not used up.
    package mutating func hasRoom(at now: Instant) -> Bool {
        limit == nil ? !path.holdsPackets() : path.hasRoom(at: now)
    }

    /// Queues a video packet under a name of the caller's; returns whether there was room.
    package mutating func enqueue(
        _ name: UInt32,
        bytes: Int,
        isRepeated: Bool,
        at now: Instant
    ) -> Bool {
        let size = bytes &+ Self.headers
        guard isRepeated else { return path.enqueue(name, bytes: size, at: now) != .full }
        return path.pacer.enqueue(name, bytes: size, class: .retransmission, at: now)
    }

    /// Whether a packet may be repeated now; a full path must not be filled with repetitions.
    package mutating func mayRepeat(bytes: Int, at now: Instant) -> Bool {
        limit == nil || path.takeRetransmission(bytes: bytes, at: now)
    }

    /// Forgets what is queued, which its owner has dropped.
    package mutating func clear() { while path.takeAny() != nil {} }

    /// Takes the name of the next queued packet that may leave.
    package mutating func takeNext(at now: Instant) -> UInt32? { path.takeNext(at: now)?.index }

    /// Returns the length of a datagram of padding that a running probe needs now, in bytes; send
    /// it before the next call.
    package mutating func padding(at now: Instant) -> Int? {
        guard path.pacer.padding(at: now) != nil else { return nil }
        return max(path.pacer.paddingPacket &- Self.headers, 1)
    }

    /// Does what is due.
    package mutating func expire(at now: Instant) {
        path.expire(at: now)
        // The other node may have stood still since.
        if let reported, now.milliseconds(since: reported) > Self.freshMilliseconds {
            fullReports = 0
        }
        review(at: now)
        guard limit != nil, let probe = path.estimator.takeProbe(at: now) else { return }
        path.pacer.start(probe, at: now)
    }

    /// Time of the next `expire`, `takeNext` or `padding` with something to do, if any.
    package func deadline(at now: Instant) -> Instant? {
        if path.holdsPackets() || path.pacer.currentProbe != nil { return path.deadline(at: now) }
        return limit == nil ? nil : path.deadline(at: now)
    }
}

/// Arrivals of another node's datagrams, which it is told for its estimate.
package struct LinkArrivals: ~Copyable {
    /// Room of a report, in bytes.
    private static let reportLength = 1_200
    /// Arrivals after which a report does not wait.
    private static let many = ArrivalLog.capacity / 4

    private var log = ArrivalLog()
    private var count = 0
    /// Time of the next report, if one is due.
    package private(set) var deadline: Instant?

    package init() {}

    /// Notes a datagram; only those with media or padding are a reason to report.
    package mutating func receive(_ counter: UInt64, isReason: Bool, at now: Instant) {
        log.receive(SequenceNumber(rawValue: UInt16(truncatingIfNeeded: counter)), at: now)
        guard isReason else { return }
        count += 1
        if count >= Self.many { deadline = now }
        guard deadline == nil else { return }
        deadline = now.advanced(milliseconds: ArrivalLog.intervalMilliseconds)
    }

    /// Returns the report that is due, if any.
    package mutating func takeReport(at now: Instant) -> [UInt8]? {
        guard let due = deadline, due <= now else { return nil }
        deadline = nil
        count = 0
        var times = UncountedArray<Int64>(capacity: 64)
        log.copy(into: &times)
        guard !times.isEmpty else { return nil }
        let base = log.baseNumber
        let number = log.feedbackCount
        var reported = 0
        let report = [UInt8](capacity: Self.reportLength) { output in
            reported = TransportFeedbackBuilder.encode(
                sender: SSRC(rawValue: 0),
                media: SSRC(rawValue: 0),
                feedbackCount: number,
                base: base,
                arrivals: times.span,
                into: &output
            )
        }
        log.reported(max(reported, 1))
        if !log.isEmpty { deadline = now }
        return report.isEmpty ? nil : report
    }
}
