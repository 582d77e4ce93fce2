internal import RTP

/// What is known of how much one viewer's path carries, and whether it can be relied on.
struct PathBandwidth: ~Copyable {
    /// Bits a second before anything is known; probes raise it within the first second.
    static let startBitrate = 300_000
    static let maximumBitrate = 50_000_000
    /// A viewer that agreed to report and does not is given up waiting for.
    static let silenceMilliseconds: Int64 = 2_000
    /// By then the first probes are answered: before, no video is taken off.
    static let settlingMilliseconds: Int64 = 3_000
    /// Loss in receiver reports that tells something, in 256ths, and for how long.
    static let tellingLoss: UInt8 = 5
    static let lossMemoryMilliseconds: Int64 = 10_000

    var estimator: BandwidthEstimator
    /// A probe under way.
    var probing: Probing?
    private var firstSent: Instant?
    private var firstReport: Instant?
    /// When a receiver report last told of loss that matters.
    private var lastLoss: Instant?

    /// A probe under way, and what of it has left.
    struct Probing: BitwiseCopyable {
        let id: ProbeID
        let bitsPerSecond: Int
        let bytes: Int
        let minimumPackets: Int
        let started: Instant
        var bytesSent = 0
        var packetsSent = 0

        init(_ probe: Probe, at now: Instant) {
            id = probe.id
            bitsPerSecond = probe.bitsPerSecond
            bytes = probe.bytes
            minimumPackets = probe.minimumPackets
            started = now
        }

        var isDone: Bool { bytesSent >= bytes && packetsSent >= minimumPackets }

        /// Bytes that should have left by now and have not.
        func due(at now: Instant) -> Int {
            let passed = max(now.nanoseconds(since: started), 0) + Self.step
            let planned = Int(Double(passed) * Double(bitsPerSecond) / 8e9)
            return max(min(planned, bytes) - bytesSent, 0)
        }

        /// Nanoseconds between two portions.
        static let step: Int64 = 2_000_000
        /// A probe that takes longer than this tells nothing any more.
        static let longest: Int64 = 200_000_000
    }

    init(at now: Instant) {
        estimator = BandwidthEstimator(
            at: now,
            startBitrate: Self.startBitrate,
            maximum: Self.maximumBitrate
        )
    }

    mutating func sent(_ sequence: UInt16, bytes: Int, at now: Instant) {
        if firstSent == nil { firstSent = now }
        probing?.bytesSent += bytes
        probing?.packetsSent += 1
        estimator.sent(sequence, bytes: bytes, at: now, probe: probing?.id)
    }

    mutating func receive(_ feedback: borrowing TransportFeedback, at now: Instant) {
        if firstReport == nil { firstReport = now }
        estimator.receive(feedback, at: now)
    }

    mutating func receiveREMB(_ bitsPerSecond: UInt64, at now: Instant) {
        if firstReport == nil { firstReport = now }
        estimator.receiveREMB(Int(min(bitsPerSecond, 1 << 40)), at: now)
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
    /// A viewer that reports neither arrivals nor an estimate gets all, until it loses packets.
    func usableEstimate(at now: Instant) -> Int? {
        if firstReport != nil { return estimator.estimate }
        if let lastLoss, now.milliseconds(since: lastLoss) < Self.lossMemoryMilliseconds {
            return estimator.estimate
        }
        guard let firstSent else { return estimator.estimate }
        let waited = now.milliseconds(since: firstSent)
        return waited < Self.silenceMilliseconds ? estimator.estimate : nil
    }

    /// Whether the estimate is more than a beginning.
    func isSettled(at now: Instant) -> Bool {
        guard let first = firstReport ?? lastLoss else { return false }
        return now.milliseconds(since: first) >= Self.settlingMilliseconds
    }

    /// When something is to be done, if ever.
    var deadline: Instant? {
        guard let probing else { return estimator.deadline }
        let next = probing.started.advanced(
            nanoseconds: Int64(Double(probing.bytesSent) * 8e9 / Double(probing.bitsPerSecond))
        )
        return min(next, estimator.deadline ?? next)
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
