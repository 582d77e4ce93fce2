package import RTP
package import SFU

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

    package init() {}

    /// When a packet's media was captured; each time later than the one before.
    package mutating func instant(of packet: TapPacket) -> Instant {
        let source = Source(position: packet.position, epoch: packet.epoch)
        let isSame = source == self.source
        if !isSame {
            self.source = source
            // Another encoding comes the same way, and takes about as long.
            anchor = (packet.arrival.advanced(nanoseconds: -transit), packet.timestamp)
        }
        let rate = Int64(packet.codec.clockRate)
        let known = packet.captured ?? anchor
        let told = known.instant.advanced(
            nanoseconds: Self.nanoseconds(packet.timestamp, since: known.timestamp, rate)
        )
        // Whatever a report says, nothing comes before it was captured.
        let raw = min(told, packet.arrival)
        if packet.captured != nil { noteTransit(packet.arrival.nanoseconds(since: raw)) }
        let instant = place(raw, isSame ? packet.timestamp : nil, rate)
        last = (instant, packet.timestamp)
        return instant
    }

    /// A second at most: what is older was sent again, or has a clock that says nothing.
    private mutating func noteTransit(_ nanoseconds: Int64) {
        guard (0...Self.jumpNanoseconds).contains(nanoseconds) else { return }
        transit += (nanoseconds - transit) / Self.transitPart
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

    /// The shorter way round.
    private static func nanoseconds(
        _ timestamp: UInt32,
        since other: UInt32,
        _ rate: Int64
    ) -> Int64 {
        Int64(Int32(bitPattern: timestamp &- other)) * 1_000_000_000 / rate
    }
}
