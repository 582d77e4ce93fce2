/// Writes transport-wide feedback (draft-holmer-rmcat-transport-wide-cc-extensions-01 §3.1).
///
/// It keeps nothing: the caller's list of arrivals is walked a few times, and nothing is allocated.
public enum TransportFeedbackBuilder {
    /// Appends one message about the packets from `base` on and returns how many it covers.
    ///
    /// The message ends where `output` is full (reckoned a little early), where an arrival is more
    /// than 8.19 s from the one before, and after 65,535 packets: call again for the rest.
    /// Where no packet has arrived, or there is no room for one, nothing is written: returns 0.
    ///
    /// - Parameters:
    ///   - sender: Our own SSRC.
    ///   - media: The SSRC of any stream of the transport.
    ///   - feedbackCount: One more than in the message before, wrapped.
    ///   - base: The sequence number of the first packet.
    ///   - arrivals: Nanoseconds since the origin of the caller's clock for each packet in order
    ///     from `base`; negative for a packet that has not arrived.
    ///   - output: Where the message goes; what is free in it is the message's limit.
    /// - Returns: How many of `arrivals` the message covers, from the first on.
    public static func encode(
        sender: SSRC,
        media: SSRC,
        feedbackCount: UInt8,
        base: SequenceNumber,
        arrivals: Span<Int64>,
        into output: inout OutputSpan<UInt8>
    ) -> Int {
        guard let reference = reference(of: arrivals) else { return 0 }
        let start = Statuses(lastTick: reference * TransportFeedback.ticksPerReference)
        let (count, deltaBytes) = extent(start, arrivals, capacity: output.freeCapacity)
        guard count > 0 else { return 0 }

        var statuses = start
        var chunks = 0
        while statuses.index < count {
            _ = takeChunk(&statuses, arrivals, end: count)
            chunks += 1
        }
        let length = TransportFeedback.headerSize + 2 * chunks + deltaBytes
        let padding = -length & 3
        output.append((padding > 0 ? 0xa0 : 0x80) | RTCPFormat.transportWide)
        output.append(RTCPType.transportFeedback)
        output.append(bigEndian: UInt16((length + padding) / 4 - 1))
        output.append(bigEndian: sender.rawValue)
        output.append(bigEndian: media.rawValue)
        output.append(bigEndian: base.rawValue)
        output.append(bigEndian: UInt16(count))
        output.append(
            bigEndian: UInt32(truncatingIfNeeded: reference) << 8 | UInt32(feedbackCount)
        )

        statuses = start
        while statuses.index < count {
            output.append(bigEndian: takeChunk(&statuses, arrivals, end: count))
        }
        appendDeltas(start, arrivals, end: count, into: &output)
        if padding > 0 {
            output.append(repeating: 0, count: padding - 1)
            output.append(UInt8(padding))
        }
        return count
    }

    /// The first arrival in units of 64 ms, rounded down.
    private static func reference(of arrivals: Span<Int64>) -> Int64? {
        for index in arrivals.indices where arrivals[index] >= 0 {
            let ticks = arrivals[index] / TransportFeedback.nanosecondsPerTick
            return ticks / TransportFeedback.ticksPerReference
        }
        return nil
    }

    /// How many statuses fit into `capacity` bytes, and the bytes of their deltas.
    ///
    /// Reckons seven statuses a chunk, the fewest that any but the last one holds.
    private static func extent(
        _ start: Statuses,
        _ arrivals: Span<Int64>,
        capacity: Int
    ) -> (count: Int, deltaBytes: Int) {
        var statuses = start
        var deltaBytes = 0
        while statuses.index < min(arrivals.count, 65_535) {
            let index = statuses.index
            let status = statuses.next(arrivals)
            let chunks = index / 7 + 1
            let size = TransportFeedback.headerSize + 2 * chunks + deltaBytes + status.deltaSize
            guard status != .reserved, (size + 3) & ~3 <= capacity else {
                return (index, deltaBytes)
            }
            deltaBytes += status.deltaSize
        }
        return (statuses.index, deltaBytes)
    }

    /// Takes one chunk's statuses: a long run, or else 14 without a large delta, or else 7.
    private static func takeChunk(
        _ statuses: inout Statuses,
        _ arrivals: Span<Int64>,
        end: Int
    ) -> UInt16 {
        let remaining = end - statuses.index
        var ahead = statuses
        let first = ahead.next(arrivals)
        var afterRun = ahead
        var run = 1
        while run < min(remaining, 8191), ahead.next(arrivals) == first {
            afterRun = ahead
            run += 1
        }
        if run >= 14 || run == remaining {
            statuses = afterRun
            return UInt16(first.rawValue) << 13 | UInt16(run)
        }

        return takeVector(&statuses, arrivals, count: min(remaining, 14))
    }

    /// Takes `count` statuses one bit each, or where one is a large delta seven at two bits each.
    private static func takeVector(
        _ statuses: inout Statuses,
        _ arrivals: Span<Int64>,
        count: Int
    ) -> UInt16 {
        var ahead = statuses
        var narrow: UInt16 = 0
        var wide: UInt16 = 0
        var afterSeven = ahead
        var hasLarge = false
        for slot in 0..<count {
            let status = ahead.next(arrivals)
            hasLarge = hasLarge || status == .large
            narrow |= UInt16(status.rawValue & 1) << UInt16(13 - slot)
            if slot < 7 {
                wide |= UInt16(status.rawValue) << UInt16(12 - 2 * slot)
                afterSeven = ahead
            }
        }
        statuses = hasLarge ? afterSeven : ahead
        return hasLarge ? 0xc000 | wide : 0x8000 | narrow
    }

    private static func appendDeltas(
        _ start: Statuses,
        _ arrivals: Span<Int64>,
        end: Int,
        into output: inout OutputSpan<UInt8>
    ) {
        var statuses = start
        while statuses.index < end {
            switch statuses.next(arrivals) {
            case .small: output.append(UInt8(truncatingIfNeeded: statuses.delta))
            case .large: output.append(bigEndian: UInt16(truncatingIfNeeded: statuses.delta))
            case .lost, .reserved: break
            }
        }
    }
}

/// A walk over arrivals that tells each one's status and delta.
private struct Statuses {
    private(set) var index = 0
    /// The delta of the status last returned, in ticks of 250 µs.
    private(set) var delta: Int64 = 0
    private var lastTick: Int64

    init(lastTick: Int64) { self.lastTick = lastTick }

    /// The next status; `reserved` where its delta cannot be written.
    ///
    /// Deltas are between rounded times, so that rounding never adds up.
    mutating func next(_ arrivals: Span<Int64>) -> PacketStatus {
        let arrival = arrivals[index]
        index += 1
        guard arrival >= 0 else { return .lost }
        let tick = arrival / TransportFeedback.nanosecondsPerTick
        delta = tick - lastTick
        lastTick = tick
        return PacketStatus(delta: delta) ?? .reserved
    }
}
