package import RTP
package import SFU
import WorkerInterface

/// Says when a frame was captured, on our monotonic clock, smoothly and never going back.
///
/// Sender reports say it for all tracks of a publisher alike; before the first one there are
/// arrivals only. What the next report changes is made up for little by little, so that no
/// sample is torn from its neighbours.
package struct CaptureTimeline {
    /// One sender's RTP clock: an encoding's numbering.
    private struct Source: Hashable {
        var position: Int
        var epoch: UInt32
    }

    private var source: Source?
    /// Where the source's clock was when it was first seen.
    private var anchor = (instant: Instant(nanoseconds: 0), timestamp: UInt32(0))
    private var last: (instant: Instant, timestamp: UInt32)?
    /// Nanoseconds from capture to arrival, as sources with a report have them on average.
    private var transit: Int64 = 0

    /// Of what goes by, the share by which times may be moved.
    private static let slewPart: Int64 = 20
    /// Errors beyond this are no drift: time jumps forward, or goes slowly.
    private static let jumpNanoseconds: Int64 = 1_000_000_000
    /// The share that one packet has in the average.
    private static let transitPart: Int64 = 8
    /// The least between two samples: a file counts milliseconds.
    private static let stepNanoseconds: Int64 = 1_000_000
    /// The longest from capture to arrival.
    ///
    /// Media waits for seconds on a network that stalls, and hardly longer: a missing packet is
    /// given up after half a second, and a browser's queue holds some seconds.
    private static let oldestNanoseconds: Int64 = 10_000_000_000

    package init() {}

    /// Returns the capture time of a packet's media, each later than the one before: at most ten
    /// seconds before the packet's arrival, and a second after it.
    ///
    /// `nil`: more than a thousand frames a second have come for ten seconds, which no file counts.
    package mutating func instant(of packet: TapPacket) -> Instant? {
        let source = Source(position: packet.position, epoch: packet.epoch)
        let isSame = source == self.source
        if !isSame {
            self.source = source
            // Another encoding comes the same way, and takes about as long.
            anchor = (packet.arrival.advanced(nanoseconds: -transit), packet.timestamp)
        }
        let rate = Int64(packet.codec.clockRate)
        let oldest = packet.arrival.advanced(nanoseconds: -Self.oldestNanoseconds)
        var known = anchor
        var hasReport = false
        // A report that nobody can believe is as none: else it would pull a publisher's tracks
        // apart by as much.
        if let captured = packet.captured,
            Self.instant(packet.timestamp, captured, rate) >= oldest
        {
            known = captured
            hasReport = true
        }
        let told = Self.instant(packet.timestamp, known, rate)
        // Whatever a report says, nothing comes before it was captured.
        let raw = min(max(told, oldest), packet.arrival)
        if hasReport { noteTransit(packet.arrival.nanoseconds(since: raw)) }
        let placed = place(raw, isSame ? packet.timestamp : nil, rate)
        let latest = packet.arrival.advanced(nanoseconds: Self.jumpNanoseconds)
        let earliest = last?.instant.advanced(nanoseconds: Self.stepNanoseconds) ?? oldest
        // Timestamps may leap by hours, or stand still.
        let instant = max(min(placed, latest), earliest, oldest)
        guard packet.arrival.nanoseconds(since: instant) >= -Self.oldestNanoseconds else {
            return nil
        }
        last = (instant, packet.timestamp)
        return instant
    }

    /// A second at most: what is older was sent again, or has a clock that says nothing.
    private mutating func noteTransit(_ nanoseconds: Int64) {
        guard (0...Self.jumpNanoseconds).contains(nanoseconds) else { return }
        // Both lie between 0 and a second, and so does what comes of them.
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
        // Far ahead, it waits at half the pace: so frames stay apart.
        let isFarAhead = error < -Self.jumpNanoseconds
        let slew = isFarAhead ? passed / 2 : passed / Self.slewPart
        return max(expected.advanced(nanoseconds: min(max(error, -slew), slew)), earliest)
    }

    /// The time of a timestamp on a clock of which one point is known.
    private static func instant(
        _ timestamp: UInt32,
        _ known: (instant: Instant, timestamp: UInt32),
        _ rate: Int64
    ) -> Instant {
        known.instant.advanced(nanoseconds: nanoseconds(timestamp, since: known.timestamp, rate))
    }

    /// The shorter way round, at most 2^31 ticks: 2.2 * 10^18 before the division.
    private static func nanoseconds(
        _ timestamp: UInt32,
        since other: UInt32,
        _ rate: Int64
    ) -> Int64 {
        Int64(Int32(bitPattern: timestamp &- other)) &* 1_000_000_000 / rate
    }
}
