import RTP

/// Reception statistics of one incoming stream for receiver reports (RFC 3550 §6.4, A.3, A.8).
struct ReceptionStatistics: BitwiseCopyable {
    private(set) var packets: UInt64 = 0
    private(set) var bytes: UInt64 = 0
    private var first = 0
    private var highest = 0
    private var expectedBefore = 0
    private var packetsBefore: UInt64 = 0
    private var lastTransit: Int64 = 0
    /// Jitter times 16, as in RFC 3550 A.8.
    private var jitterTimes16: Int64 = 0
    /// NTP and RTP times and arrival of the last sender report.
    private(set) var senderNTP = NTPTime(rawValue: 0)
    private(set) var senderTimestamp: UInt32 = 0
    /// Fraction of packets lost in the last report's interval, in 256ths.
    private(set) var fractionLost: UInt8 = 0
    private(set) var senderReportArrival: Instant?

    /// Interarrival jitter in RTP timestamp units.
    var jitter: UInt32 { UInt32(clamping: jitterTimes16 >> 4) }

    /// Packets lost since the start; negative after duplicates.
    var lost: Int64 { Int64(expected) &- Int64(clamping: packets) }

    private var expected: Int { packets == 0 ? 0 : highest &- first &+ 1 }

    /// Counts one packet; `extended` is its sequence number with wraps counted.
    mutating func receive(
        extended: Int,
        timestamp: UInt32,
        length: Int,
        clockRate: Int,
        at now: Instant
    ) {
        let arrival = Int64(clockRate) &* (now.nanoseconds / 1_000) / 1_000_000
        let transit = Int64(Int32(truncatingIfNeeded: arrival &- Int64(timestamp)))
        if packets == 0 {
            first = extended
            highest = extended
        } else {
            let difference = abs(Int64(Int32(truncatingIfNeeded: transit &- lastTransit)))
            jitterTimes16 &+= difference &- (jitterTimes16 &+ 8) >> 4
        }
        lastTransit = transit
        highest = max(highest, extended)
        packets &+= 1
        bytes &+= UInt64(length)
    }

    /// Resets the numbering but keeps the totals, for a sender that restarted.
    mutating func restart(at extended: Int) {
        let lostBefore = max(0, Int(clamping: lost))
        first = extended &- Int(clamping: packets) &- lostBefore
        highest = max(extended &- 1, first)
        expectedBefore = min(expectedBefore, expected)
    }

    mutating func receive(_ report: SenderReport, at now: Instant) {
        senderNTP = report.ntp
        senderTimestamp = report.rtpTimestamp
        senderReportArrival = now
    }

    /// Returns the block for the next report, and begins a new interval.
    mutating func report(ssrc: SSRC, at now: Instant) -> ReceptionReport {
        let expectedInterval = expected &- expectedBefore
        let receivedInterval = Int(clamping: packets &- packetsBefore)
        expectedBefore = expected
        packetsBefore = packets
        let lostInterval = max(0, expectedInterval &- receivedInterval)
        let fraction = expectedInterval > 0 ? min(255, lostInterval &* 256 / expectedInterval) : 0
        fractionLost = UInt8(clamping: fraction)
        var delay: Int64 = 0
        if let senderReportArrival {
            delay = now.nanoseconds(since: senderReportArrival) / 1_000 &* 65_536 / 1_000_000
        }
        return ReceptionReport(
            ssrc: ssrc,
            fractionLost: fractionLost,
            cumulativeLost: Int32(clamping: max(-0x80_0000, min(0x7f_ffff, lost))),
            highestSequence: UInt32(truncatingIfNeeded: highest),
            jitter: jitter,
            lastSenderReport: senderReportArrival == nil ? 0 : senderNTP.compact,
            delaySinceLastSenderReport: UInt32(clamping: delay)
        )
    }
}
