package import RTP
package import SFU
import WorkerInterface

/// Estimator of capture times on our monotonic clock, smooth and strictly increasing.
///
/// Sender reports map the RTP clocks of all of a publisher's tracks to one clock; before the first
/// report there are only arrival times. A correction by the next report is applied gradually, so
/// that neighboring samples stay evenly spaced.
package struct CaptureTimeline {
    /// RTP clock of one sender: one sequence number space of an encoding.
    private struct Source: Hashable {
        var position: Int
        var epoch: UInt32
    }

    private var source: Source?
    /// First estimated point of the source's clock.
    private var anchor = (instant: Instant(nanoseconds: 0), timestamp: UInt32(0))
    private var last: (instant: Instant, timestamp: UInt32)?
    /// Average nanoseconds from capture to arrival, of sources with a sender report.
    private var transit: Int64 = 0

    /// Divisor of the elapsed time that gives the largest correction.
    private static let slewPart: Int64 = 20
    /// Errors beyond this are not drift: time then jumps forward, or runs at half speed.
    private static let jumpNanoseconds: Int64 = 1_000_000_000
    /// Divisor that gives a packet's weight in the average.
    private static let transitPart: Int64 = 8
    /// Smallest distance of two samples, as files count milliseconds.
    private static let stepNanoseconds: Int64 = 1_000_000
    /// Longest credible time from capture to arrival.
    ///
    /// A stalled network delays media by seconds, and hardly longer: a missing packet is abandoned
    /// after half a second, and a browser's send queue holds a few seconds.
    private static let oldestNanoseconds: Int64 = 10_000_000_000

    package init() {}

    /// Returns the capture time of a packet's media, each later than the one before.
    ///
    /// It is at most ten seconds before the packet's arrival, and one second after it. `nil` means
    /// that more than a thousand frames a second have come for ten seconds, which no file can
    /// represent.
    package mutating func instant(of packet: TapPacket) -> Instant? {
        let source = Source(position: packet.position, epoch: packet.epoch)
        let isSame = source == self.source
        if !isSame {
            self.source = source
            // Another encoding takes the same network path, so it has about the same delay.
            anchor = (packet.arrival.advanced(nanoseconds: -transit), packet.timestamp)
        }
        let rate = Int64(packet.codec.clockRate)
        let oldest = packet.arrival.advanced(nanoseconds: -Self.oldestNanoseconds)
        var known = anchor
        var hasReport = false
        // Ignore an implausible report, which would put a publisher's tracks out of sync.
        if let captured = packet.captured,
            Self.instant(packet.timestamp, captured, rate) >= oldest
        {
            known = captured
            hasReport = true
        }
        let told = Self.instant(packet.timestamp, known, rate)
        // Media cannot arrive before its capture, even if a report says so.
        let raw = min(max(told, oldest), packet.arrival)
        if hasReport { noteTransit(packet.arrival.nanoseconds(since: raw)) }
        let placed = place(raw, isSame ? packet.timestamp : nil, rate)
        let latest = packet.arrival.advanced(nanoseconds: Self.jumpNanoseconds)
        let earliest = last?.instant.advanced(nanoseconds: Self.stepNanoseconds) ?? oldest
        // Timestamps may jump by hours, or not advance.
        let instant = max(min(placed, latest), earliest, oldest)
        guard packet.arrival.nanoseconds(since: instant) >= -Self.oldestNanoseconds else {
            return nil
        }
        last = (instant, packet.timestamp)
        return instant
    }

    /// Updates the average delay; ignores delays beyond a second, which are retransmissions or
    /// wrong clocks.
    private mutating func noteTransit(_ nanoseconds: Int64) {
        guard (0...Self.jumpNanoseconds).contains(nanoseconds) else { return }
        // Both are between 0 and a second, and so is the result.
        transit &+= (nanoseconds &- transit) / Self.transitPart
    }

    private func place(_ raw: Instant, _ timestamp: UInt32?, _ rate: Int64) -> Instant {
        guard let last else { return raw }
        let earliest = last.instant.advanced(nanoseconds: Self.stepNanoseconds)
        guard let timestamp else { return max(raw, earliest) }
        let passed = Self.nanoseconds(timestamp, since: last.timestamp, rate)
        guard passed > 0 else { return earliest }
        let expected = last.instant.advanced(nanoseconds: passed)
        let error = raw.nanoseconds(since: expected)
        guard error <= Self.jumpNanoseconds else { return raw }
        // If far ahead, time runs at half speed, so that frames stay apart.
        let isFarAhead = error < -Self.jumpNanoseconds
        let slew = isFarAhead ? passed / 2 : passed / Self.slewPart
        return max(expected.advanced(nanoseconds: min(max(error, -slew), slew)), earliest)
    }

    /// Returns the time of a timestamp on a clock with one known point.
    private static func instant(
        _ timestamp: UInt32,
        _ known: (instant: Instant, timestamp: UInt32),
        _ rate: Int64
    ) -> Instant {
        known.instant.advanced(nanoseconds: nanoseconds(timestamp, since: known.timestamp, rate))
    }

    /// Returns the signed time between two timestamps, modulo 2^32.
    ///
    /// The distance is at most 2^31 ticks, so the product is at most 2.2 * 10^18.
    private static func nanoseconds(
        _ timestamp: UInt32,
        since other: UInt32,
        _ rate: Int64
    ) -> Int64 {
        Int64(Int32(bitPattern: timestamp &- other)) &* 1_000_000_000 / rate
    }
}
