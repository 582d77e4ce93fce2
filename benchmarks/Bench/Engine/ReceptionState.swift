import RTP

/// Receiver-report state of a stream besides loss (RFC 3550 §6.4.1).
struct ReceptionState {
    /// Last sender report, with its arrival time.
    var senderReport: (compact: UInt32, at: Instant)?
    private let ssrc: UInt32
    private let clock: Int64
    private var lastTransit: Int64?
    /// Jitter in sixteenths of a timestamp unit.
    private var jitter: Int64 = 0

    init(ssrc: UInt32, clock: Int) {
        self.ssrc = ssrc
        self.clock = Int64(clock)
    }

    mutating func note(_ timestamp: UInt32, at now: Instant) {
        let arrival = now.nanoseconds / 1_000 &* clock / 1_000_000
        let transit = Int64(
            Int32(bitPattern: UInt32(truncatingIfNeeded: arrival) &- timestamp)
        )
        // RFC 3550 appendix A.8.
        if let lastTransit {
            let step = abs(Int64(Int32(truncatingIfNeeded: transit &- lastTransit)))
            jitter += step - (jitter + 8) >> 4
        }
        lastTransit = transit
    }

    func report(highest: Int64, lost: UInt64, at now: Instant) -> ReceptionReport {
        var report = ReceptionReport(ssrc: SSRC(rawValue: ssrc))
        report.highestSequence = UInt32(truncatingIfNeeded: highest)
        report.cumulativeLost = Int32(clamping: lost)
        report.jitter = UInt32(clamping: jitter >> 4)
        if let senderReport {
            report.lastSenderReport = senderReport.compact
            let delay = now.nanoseconds(since: senderReport.at)
            report.delaySinceLastSenderReport = UInt32(clamping: (delay &<< 16) / 1_000_000_000)
        }
        return report
    }
}
