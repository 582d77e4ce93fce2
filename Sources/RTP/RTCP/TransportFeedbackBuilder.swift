/// Writer of transport-wide feedback (draft-holmer-rmcat-transport-wide-cc-extensions-01 §3.1).
///
/// It is stateless: it walks the caller's list of arrivals four times and allocates nothing.
public enum TransportFeedbackBuilder {
    /// Appends one message about the packets from `base` and returns the number of packets it
    /// covers.
    ///
    /// The message ends when `output` is full (estimated conservatively), before an arrival that is
    /// more than 8.19 s from the previous one, and after 65,535 packets; call again for the rest.
    /// If no packet has arrived, or there is no room for one, nothing is written and 0 is returned.
    ///
    /// - Parameters:
    ///   - sender: Our own SSRC.
    ///   - media: The SSRC of any stream of the transport.
    ///   - feedbackCount: The previous message's count plus one, with wraparound.
    ///   - base: The sequence number of the first packet.
    ///   - arrivals: Nanoseconds since the origin of the caller's clock for each packet in order
    ///     from `base`; negative for a packet that has not arrived.
    ///   - output: The destination; its free space limits the message.
    /// - Returns: The number of `arrivals` that the message covers, from the first on.
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
        let count = extent(start, arrivals, capacity: output.freeCapacity)
        guard count > 0 else { return 0 }

        let header = output.count
        output.append(0x80 | RTCPFormat.transportWide)
        output.append(RTCPType.transportFeedback)
        output.append(bigEndian: UInt16(0))
        output.append(bigEndian: sender.rawValue)
        output.append(bigEndian: media.rawValue)
        output.append(bigEndian: base.rawValue)
        output.append(bigEndian: UInt16(count))
        output.append(
            bigEndian: UInt32(truncatingIfNeeded: reference) << 8 | UInt32(feedbackCount)
        )
        var statuses = start
        while statuses.index < count {
            output.append(bigEndian: takeChunk(&statuses, arrivals, end: count))
        }
        appendDeltas(start, arrivals, end: count, into: &output)
        finish(from: header, into: &output)
        return count
    }

    /// Returns the first arrival in units of 64 ms, rounded down.
    private static func reference(of arrivals: Span<Int64>) -> Int64? {
        for index in arrivals.indices where arrivals[index] >= 0 {
            let ticks = arrivals[index] / TransportFeedback.nanosecondsPerTick
            return ticks / TransportFeedback.ticksPerReference
        }
        return nil
    }

    /// Returns the number of statuses that fit into `capacity` bytes.
    ///
    /// It assumes seven statuses per chunk, the minimum of every chunk but the last.
    private static func extent(
        _ start: Statuses,
        _ arrivals: Span<Int64>,
        capacity: Int
    ) -> Int {
        var statuses = start
        var deltaBytes = 0
        while statuses.index < min(arrivals.count, 65_535) {
            let index = statuses.index
            let status = statuses.next(arrivals)
            let chunks = index / 7 + 1
            let size = TransportFeedback.headerSize + 2 * chunks + deltaBytes + status.deltaSize
            guard status != .reserved, (size + 3) & ~3 <= capacity else { return index }
            deltaBytes += status.deltaSize
        }
        return statuses.index
    }

    /// Encodes one chunk: a long run, or else 14 statuses without a large delta, or else 7.
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

    /// Encodes `count` one-bit statuses, or seven two-bit ones if any is a large delta.
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

    /// Pads to a multiple of four and sets the length.
    private static func finish(from header: Int, into output: inout OutputSpan<UInt8>) {
        let padding = -(output.count - header) & 3
        if padding > 0 {
            output.append(repeating: 0, count: padding - 1)
            output.append(UInt8(padding))
        }
        let words = (output.count - header) / 4 - 1
        var written = output.mutableSpan
        written.put(UInt16(words), at: header + 2)
        if padding > 0 { written[header] |= 0x20 }
    }
}

/// Iterator over arrivals that yields each one's status and delta.
private struct Statuses {
    private(set) var index = 0
    /// Delta of the last returned status, in ticks of 250 µs.
    private(set) var delta: Int64 = 0
    private var lastTick: Int64

    init(lastTick: Int64) { self.lastTick = lastTick }

    /// Returns the next status, or `reserved` if its delta cannot be encoded.
    ///
    /// Deltas are between rounded times, so rounding errors do not accumulate.
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
