package import RTP
package import SFU
package import WorkerInterface

/// RTP and RTCP sender of one publication for plain RTP forwarding (RFC 3550).
///
/// Of a simulcast it follows the encoding that the publisher's worker considers the best, and
/// switches at a keyframe. Sequence numbers and timestamps are continuous across switches. Packets
/// leave as they arrive, so a retransmission leaves late, with the number that the lost packet
/// would have had. Lost packets leave gaps in the numbers; packets held back by a closed gate do
/// not.
package struct PlainRTPSender {
    /// Sequence number space of one of the publisher's encodings.
    private struct Source {
        var position: Int
        var epoch: UInt32
        /// Offset added to its timestamps.
        var timestampOffset: UInt32
        /// Highest received number.
        var highest: Int64
        /// Offsets added to its numbers, each with the first number that it applies to; in order.
        var offsets: [(from: Int64, offset: Int64)]
        /// Reference point of its clock and ours: from sender reports, or before one the first
        /// arrival.
        var clock: (instant: Instant, timestamp: UInt32)
        var hasReport = false
        /// Packet with the highest number.
        var last: (arrival: Instant, timestamp: UInt32)
    }

    private let line: RTPForwardTarget.Line
    private let cname: [UInt8]
    private var source: Source?
    /// Whether the gate was closed, so that the next packet begins a new range of numbers.
    private var isInterrupted = false
    private var best: Int?
    /// Whether any packet has arrived, even if the stream could not begin with it.
    private var hasCome = false
    /// Sequence number of the next packet in order.
    private var next: Int64
    /// Missing numbers, each with the time since which it is missing.
    private var holes: [Int64: Instant] = [:]
    /// Whether packets are lost, so that a keyframe is needed.
    private var isBroken = false
    private var sent = (packets: UInt32(0), octets: UInt32(0))
    private var reportDue: Instant?

    /// Largest number of offsets remembered for late packets.
    private static let offsetLimit = 32
    /// Largest number of tracked missing packets; one more, and all are considered lost.
    private static let holeLimit = 256
    /// Longest time in milliseconds to wait for a missing video packet.
    private static let patienceMilliseconds: Int64 = 500
    private static let reportMilliseconds: Int64 = 1_000
    /// Largest plausible deviation of the time between two sources' captures from that between
    /// their arrivals.
    private static let beliefNanoseconds: Int64 = 10_000_000_000

    /// Creates the sender; `cname` is shared by audio and video of a stream, and cut to 255 bytes.
    package init(_ line: RTPForwardTarget.Line, cname: String) {
        self.line = line
        self.cname = Array(cname.utf8.prefix(255))
        next = Int64(line.firstNumber)
    }

    /// Encoding that needs a keyframe; `nil` if none.
    package var neededKeyframe: Int? {
        guard line.kind == .video, hasCome else { return nil }
        let wanted = best ?? source?.position ?? 0
        let isGoing = source?.position == wanted && !isInterrupted && !isBroken
        return isGoing ? nil : wanted
    }

    /// Encoding that is sent, or would be.
    package var position: Int { source?.position ?? best ?? 0 }

    /// Handles a closed gate; the stream begins again when it opens.
    package mutating func mute() {
        isInterrupted = true
        holes = [:]
    }
}

// Packets.
extension PlainRTPSender {
    /// Returns the RTP packet to send; `nil` if the packet is not forwarded.
    package mutating func datagram(of packet: TapPacket) -> [UInt8]? {
        hasCome = true
        best = packet.best ?? best
        if continues(packet) {
            guard let number = number(of: packet) else { return nil }
            return encode(packet, number)
        }
        guard begins(packet) else { return nil }
        begin(with: packet)
        return packet.isPadding ? nil : number(of: packet).map { encode(packet, $0) }
    }

    private func continues(_ packet: TapPacket) -> Bool {
        guard let source, !isInterrupted else { return false }
        return source.position == packet.position && source.epoch == packet.epoch
    }

    private func begins(_ packet: TapPacket) -> Bool {
        if let source, source.position == packet.position, source.epoch != packet.epoch {
            // A late packet of an earlier sequence number space is dropped.
            guard Int32(bitPattern: packet.epoch &- source.epoch) > 0 else { return false }
        }
        guard packet.position == best ?? packet.position else { return false }
        return line.kind == .audio || packet.isKeyframeStart
    }

    private mutating func begin(with packet: TapPacket) {
        let clock = packet.captured ?? (packet.arrival, packet.timestamp)
        source = Source(
            position: packet.position,
            epoch: packet.epoch,
            timestampOffset: timestamp(after: packet) &- packet.timestamp,
            highest: packet.number &- 1,
            offsets: [(packet.number, next &- packet.number)],
            clock: clock,
            hasReport: packet.captured != nil,
            last: (packet.arrival, packet.timestamp)
        )
        isInterrupted = false
        isBroken = false
        holes = [:]
    }

    /// Returns the outgoing timestamp of a new source's first packet: the last one plus the elapsed
    /// time.
    private func timestamp(after packet: TapPacket) -> UInt32 {
        guard let source else { return line.firstTimestamp }
        let old = source.last.timestamp &+ source.timestampOffset
        if source.position == packet.position, source.epoch == packet.epoch {
            return packet.timestamp &+ source.timestampOffset
        }
        var passed = packet.arrival.nanoseconds(since: source.last.arrival)
        // Capture times are more accurate, if both sources have them.
        if source.hasReport, let captured = packet.captured {
            let before = instant(of: source.last.timestamp, source.clock)
            let told = instant(of: packet.timestamp, captured).nanoseconds(since: before)
            // A sender report may be wrong.
            if told.isWithin(Self.beliefNanoseconds, of: passed) { passed = told }
        }
        return old &+ ticks(max(passed, 1_000_000))
    }

    /// Returns the outgoing number of a packet, and tracks missing numbers; `nil` if it is not
    /// sent.
    private mutating func number(of packet: TapPacket) -> Int64? {
        guard var source else { return nil }
        defer { self.source = source }
        if packet.number > source.highest {
            note(missing: source.highest &+ 1, before: packet)
            let isNext = packet.number == source.highest &+ 1
            source.highest = packet.number
            source.last = (packet.arrival, packet.timestamp)
            if packet.isPadding, isNext {
                // Padding is not sent, and leaves no gap.
                let offset = (source.offsets.last?.offset ?? 0) &- 1
                source.offsets.append((packet.number &+ 1, offset))
                if source.offsets.count > Self.offsetLimit { source.offsets.removeFirst() }
                return nil
            }
        } else {
            holes[packet.number] = nil
        }
        if let captured = packet.captured {
            source.clock = captured
            source.hasReport = true
        }
        guard !packet.isPadding,
            let offset = source.offsets.last(where: { $0.from <= packet.number })?.offset
        else { return nil }
        let number = packet.number &+ offset
        next = max(next, number &+ 1)
        return number
    }

    private mutating func note(missing first: Int64, before packet: TapPacket) {
        guard line.kind == .video else { return }
        if packet.isKeyframeStart {
            holes = [:]
            isBroken = false
            return
        }
        // The number is above the previous highest, so the difference is not negative.
        let missing = UInt64(bitPattern: packet.number &- first)
        guard missing <= UInt64(Self.holeLimit), holes.count <= Self.holeLimit &- Int(missing)
        else {
            isBroken = true
            holes = [:]
            return
        }
        for step in 0..<Int64(missing) { holes[first &+ step] = packet.arrival }
    }

    private mutating func encode(_ packet: TapPacket, _ number: Int64) -> [UInt8] {
        sent.packets &+= 1
        sent.octets &+= UInt32(truncatingIfNeeded: packet.payload.count)
        let timestamp = packet.timestamp &+ (source?.timestampOffset ?? 0)
        return [UInt8](capacity: 12 + packet.payload.count) { output in
            output.append(0x80)
            output.append((packet.isMarked ? 0x80 : 0) | line.payloadType)
            output.append(bigEndian: UInt16(truncatingIfNeeded: number))
            output.append(bigEndian: timestamp)
            output.append(bigEndian: line.ssrc.rawValue)
            output.append(copying: packet.payload.span)
        }
    }
}

// RTCP.
extension PlainRTPSender {
    /// Considers packets lost that have been missing for too long.
    package mutating func expire(at now: Instant) {
        let due = now.advanced(milliseconds: -Self.patienceMilliseconds)
        guard holes.contains(where: { $0.value <= due }) else { return }
        isBroken = true
        holes = [:]
    }

    /// Returns a sender report with its source description, once a second while packets are sent.
    ///
    /// `unixNanoseconds` is the current Unix time.
    package mutating func report(at now: Instant, unixNanoseconds: Int64) -> [UInt8]? {
        guard let source, !isInterrupted, reportDue.map({ $0 <= now }) != false else { return nil }
        reportDue = now.advanced(milliseconds: Self.reportMilliseconds)
        let passed = now.nanoseconds(since: source.clock.instant)
        let timestamp = source.clock.timestamp &+ ticks(passed) &+ source.timestampOffset
        let report = SenderReport(
            sender: line.ssrc,
            ntp: NTPTime(unixNanoseconds: unixNanoseconds),
            rtpTimestamp: timestamp,
            packets: sent.packets,
            octets: sent.octets
        )
        let size =
            SenderReport.encodedSize + SourceDescription.encodedSize(cnameLength: cname.count)
        return [UInt8](capacity: size) { output in
            report.encode(into: &output)
            SourceDescription.encode(ssrc: line.ssrc, cname: cname.span, into: &output)
        }
    }

    /// RTCP BYE packet (RFC 3550 §6.6).
    package var goodbye: [UInt8] {
        // A compound packet begins with a report: here an empty one (RFC 3550 §6.1).
        let size =
            8 + SourceDescription.encodedSize(cnameLength: cname.count)
            + Goodbye.encodedSize(sources: 1)
        let sources = [line.ssrc]
        return [UInt8](capacity: size) { output in
            output.append(0x80)
            output.append(RTCPType.receiverReport)
            output.append(bigEndian: UInt16(1))
            output.append(bigEndian: line.ssrc.rawValue)
            SourceDescription.encode(ssrc: line.ssrc, cname: cname.span, into: &output)
            Goodbye.encode(sources.span, into: &output)
        }
    }

    /// Returns whether a receiver requests a keyframe (RFC 4585 §6.3.1, RFC 5104 §4.3.1).
    package func requestsKeyframe(by rtcp: Span<UInt8>) -> Bool {
        var blocks = RTCPBlocks(rtcp)
        while let block = blocks.next() {
            if let loss = try? PictureLossIndication(block), loss.media == line.ssrc { return true }
            guard let request = try? FullIntraRequest(block) else { continue }
            for index in 0..<request.count where request[index].media == line.ssrc { return true }
        }
        return false
    }

    private func ticks(_ nanoseconds: Int64) -> UInt32 {
        // In two parts, so that the product cannot overflow.
        let rate = Int64(line.codec.clockRate)
        let (seconds, rest) = nanoseconds.quotientAndRemainder(dividingBy: 1_000_000_000)
        return UInt32(truncatingIfNeeded: seconds &* rate &+ rest &* rate / 1_000_000_000)
    }

    private func instant(
        of timestamp: UInt32,
        _ clock: (instant: Instant, timestamp: UInt32)
    ) -> Instant {
        let ticks = Int64(Int32(bitPattern: timestamp &- clock.timestamp))
        return clock.instant.advanced(
            // At most 2^31 ticks, so the product is at most 2.2 * 10^18.
            nanoseconds: ticks &* 1_000_000_000 / Int64(line.codec.clockRate)
        )
    }
}

extension Int64 {
    /// Returns whether `other` is at most `distance` away; never overflows.
    fileprivate func isWithin(_ distance: Int64, of other: Int64) -> Bool {
        let (difference, overflows) = subtractingReportingOverflow(other)
        return !overflows && (-distance...distance).contains(difference)
    }
}
