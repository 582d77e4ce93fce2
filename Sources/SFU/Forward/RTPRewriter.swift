import RTP
import WorkerInterface

/// Per-slot RTP rewriter: turns packets of changing sources into one continuous stream.
///
/// A span is a range of outgoing packet indexes made with one offset. The last spans are kept, so
/// that a late or retransmitted packet gets the number it would have had. Indexes count sequence
/// number wraps: with 16 bits alone two packets would one day get the same index.
///
/// It lies in its slot's first cache line. The spans before the current one are stored elsewhere
/// and read only for packets that the current span does not cover.
struct RTPRewriter: BitwiseCopyable {
    struct SequenceSpan: BitwiseCopyable {
        /// First packet index of the span.
        var first: Int64 = 0
        /// Difference between a packet's index and its incoming number.
        var offset: Int64 = 0
        /// Encoding, and its sequence number epoch, that the offsets apply to.
        var encoding = OptionalIndex<HandleKind.Encoding>()
        var epoch: UInt32 = 0
        var timestampOffset: UInt32 = 0
        var pictureOffset: UInt16 = 0
        var tl0Offset: UInt8 = 0
        /// Layers of the encoding that are forwarded.
        var point = LayerPoint.top

        func matches(_ info: borrowing PacketInfo) -> Bool {
            guard encoding == OptionalIndex(info.encoding) else { return false }
            return epoch == info.epoch
        }
    }

    static var none: PreviousSpans { PreviousSpans() }

    private(set) var current = SequenceSpan()
    /// Packet index (RFC 3711 §3.3.1) of the newest packet sent, or one below the first.
    private(set) var highest: Int64
    private(set) var lastArrival = Instant(nanoseconds: 0)
    private(set) var lastTimestamp: UInt32
    private(set) var lastPicture: UInt16 = 0
    private(set) var lastTL0: UInt8 = 0
    /// Whether a packet was ever sent.
    private(set) var hasStarted = false

    /// Picks the first index and timestamp from `random`.
    ///
    /// The first index is below 2^15, so that the first wrap is far off (RFC 3711 §3.3.1).
    init(random: UInt64) {
        highest = Int64(random & 0x3fff) + 1
        lastTimestamp = UInt32(truncatingIfNeeded: random >> 32)
    }

    /// Numbering that an earlier process has left.
    struct Saved {
        var highest: Int64
        var lastArrival: Instant
        var lastTimestamp: UInt32
        var lastPicture: UInt16
        var lastTL0: UInt8
        var hasStarted: Bool
        /// The span as it was, with an encoding of the earlier process.
        var span: SequenceSpan
    }

    /// Continues an earlier process's numbering after the newest index that it may have sent.
    ///
    /// Its spans are gone, so its packets cannot be retransmitted.
    mutating func resume(_ saved: Saved) {
        highest = saved.highest
        lastArrival = saved.lastArrival
        lastTimestamp = saved.lastTimestamp
        lastPicture = saved.lastPicture
        lastTL0 = saved.lastTL0
        hasStarted = saved.hasStarted
        current = SequenceSpan(first: highest &+ 1)
    }

    /// Goes on with the earlier process's span, which is one of `encoding` now.
    ///
    /// Indexes up to the newest one have been used, or are given up.
    mutating func resume(_ span: SequenceSpan, as encoding: EncodingIndex, epoch: UInt32) {
        current = span
        current.first = highest &+ 1
        current.encoding = OptionalIndex(encoding)
        current.epoch = epoch
    }

    /// Begins a span with this packet: numbers continue without a gap, timestamps by the clock.
    ///
    /// `timestamp` is the outgoing timestamp if it is known exactly; it is used if it is plausible
    /// for the time that has passed.
    mutating func begin(
        with info: borrowing PacketInfo,
        clockRate: Int,
        timestamp: UInt32?,
        point: LayerPoint = .top,
        after earlier: inout PreviousSpans
    ) {
        let next = highest + 1
        let outgoing = nextTimestamp(info, clockRate: clockRate, exact: timestamp)
        if hasStarted { earlier.append(current) }
        earlier.skippedPicture = .max
        current = SequenceSpan(
            first: next,
            offset: next - info.number,
            encoding: OptionalIndex(info.encoding),
            epoch: info.epoch,
            timestampOffset: outgoing &- info.timestamp,
            pictureOffset: hasStarted ? lastPicture &+ 1 &- info.pictureID : 0,
            tl0Offset: hasStarted ? lastTL0 &+ 1 &- info.tl0PictureIndex : 0,
            point: point
        )
    }

    /// Forwards other layers from this packet index on, which must be above all that are in use.
    ///
    /// The offsets stay the same.
    mutating func turn(to point: LayerPoint, from index: Int64, after earlier: inout PreviousSpans)
    {
        if current.first < index { earlier.append(current) }
        current.first = index
        current.point = point
    }

    private func nextTimestamp(
        _ info: borrowing PacketInfo,
        clockRate: Int,
        exact: UInt32?
    ) -> UInt32 {
        guard hasStarted else { return lastTimestamp }
        let elapsed = max(0, info.arrival.nanoseconds(since: lastArrival))
        let ticks = elapsed / 1_000 &* Int64(clockRate) / 1_000_000
        // Two pictures never share a timestamp.
        let least = Int64(clockRate / 200)
        let expected = lastTimestamp &+ UInt32(truncatingIfNeeded: max(ticks, least))
        guard let exact else { return expected }
        let step = Int64(Int32(bitPattern: exact &- lastTimestamp))
        let isPlausible = step >= least && abs(step - ticks) < Int64(clockRate)
        return isPlausible ? exact : expected
    }

    /// Closes the numbering over a packet that is not forwarded, so that subscribers see no gap.
    ///
    /// Returns `false` if that is impossible: a later packet is numbered already, or the packet
    /// belongs to another span.
    mutating func skip(_ info: borrowing PacketInfo, after earlier: inout PreviousSpans) -> Bool {
        guard current.matches(info) else { return false }
        let index = info.number + current.offset
        // Gaps before the current span are already counted by the spans after them.
        guard index > highest, index >= current.first else { return false }
        var span = current
        span.first = index
        span.offset -= 1
        let flags = info.flags
        if flags.contains(.countsPictures), UInt32(info.pictureID) != earlier.skippedPicture {
            earlier.skippedPicture = UInt32(info.pictureID)
            span.pictureOffset &-= 1
        }
        if current.first != index { earlier.append(current) }
        earlier.countLeftOut()
        current = span
        return true
    }

    /// Returns the timestamps of frames that are sent all at once: the first, and the step to the
    /// next.
    ///
    /// The last one's, `newest`, continues by the clock; those before it precede it closely, so
    /// that no receiver plays the past.
    func timestamps(
        ofFrames count: Int,
        upTo newest: borrowing PacketInfo,
        clockRate: Int
    ) -> (first: UInt32, step: UInt32) {
        let step = UInt32(clockRate / 1_000)
        guard hasStarted, count > 0 else { return (lastTimestamp, step) }
        let last = nextTimestamp(newest, clockRate: clockRate, exact: nil)
        let room = (last &- lastTimestamp) / UInt32(clamping: count)
        let fitting = max(1, min(step, room))
        return (last &- fitting &* UInt32(clamping: count &- 1), fitting)
    }

    /// Numbers a packet of an earlier time as the next one; all between it and the last one are
    /// left out.
    mutating func replay(
        _ info: borrowing PacketInfo,
        isFirst: Bool,
        timestamp: UInt32,
        point: LayerPoint,
        after earlier: inout PreviousSpans
    ) {
        let picture = info.pictureID
        var pictureOffset = hasStarted ? lastPicture &+ 1 &- picture : 0
        var tl0Offset = hasStarted ? lastTL0 &+ 1 &- info.tl0PictureIndex : 0
        if !isFirst {
            let isCounted = info.flags.contains(.countsPictures)
            let isSamePicture = picture &+ current.pictureOffset == lastPicture
            if isSamePicture || !isCounted { pictureOffset = current.pictureOffset }
            tl0Offset = current.tl0Offset
        }
        let span = SequenceSpan(
            first: highest &+ 1,
            offset: highest &+ 1 &- info.number,
            encoding: OptionalIndex(info.encoding),
            epoch: info.epoch,
            timestampOffset: timestamp &- info.timestamp,
            pictureOffset: pictureOffset,
            tl0Offset: tl0Offset,
            point: point
        )
        begin(span, after: &earlier)
    }

    /// Continues after a replay with the packet `number`; those between are left out, of which
    /// `omitted` is the newest.
    mutating func resume(
        at number: Int64,
        omitting omitted: (picture: UInt16, isCounted: Bool)?,
        after earlier: inout PreviousSpans
    ) {
        var span = current
        span.first = highest &+ 1
        span.offset = highest &+ 1 &- number
        if let omitted, omitted.isCounted, omitted.picture &+ span.pictureOffset != lastPicture {
            span.pictureOffset = lastPicture &- omitted.picture
        }
        begin(span, after: &earlier)
        if let omitted, omitted.isCounted { earlier.skippedPicture = UInt32(omitted.picture) }
    }

    private mutating func begin(_ span: SequenceSpan, after earlier: inout PreviousSpans) {
        earlier.skippedPicture = .max
        let isSame =
            hasStarted && span.offset == current.offset && span.epoch == current.epoch
            && span.encoding == current.encoding && span.point == current.point
            && span.timestampOffset == current.timestampOffset
            && span.pictureOffset == current.pictureOffset && span.tl0Offset == current.tl0Offset
        guard !isSame else { return }
        if hasStarted, current.first <= highest { earlier.append(current) }
        current = span
    }

    /// Returns the packet index of a packet of the current span that directly follows the newest
    /// one.
    func nextIndex(of info: borrowing PacketInfo) -> Int64? {
        guard current.matches(info) else { return nil }
        let index = info.number &+ current.offset
        return index >= current.first && index == highest &+ 1 ? index : nil
    }

    /// Whether nothing was sent under an index yet.
    func isUnsent(_ index: Int64, after earlier: borrowing PreviousSpans) -> Bool {
        index > highest || earlier.isUnsent(index)
    }

    /// Whether a packet, or a later one of its incoming numbering, was sent already.
    ///
    /// A span that began with an older packet would give a second index to packets an earlier span
    /// has sent, so a stream never goes back.
    func hasSent(_ info: borrowing PacketInfo, after earlier: borrowing PreviousSpans) -> Bool {
        guard hasStarted else { return false }
        var end = highest &+ 1
        var span = current
        var age = 0
        while true {
            if span.matches(info), span.first < end, info.number &+ span.offset < end {
                return true
            }
            end = min(end, span.first)
            age += 1
            guard let older = earlier[age: age] else { return false }
            span = older
        }
    }

    /// Whether the current span would leave out more indexes before this packet than receivers can
    /// follow.
    func leavesTooLargeGap(
        before info: borrowing PacketInfo,
        after earlier: borrowing PreviousSpans
    ) -> Bool {
        !earlier.allowsStep(from: highest, to: info.number &+ current.offset)
    }

    /// Returns the span and packet index of a packet, or `nil` if it is too late to be placed, or
    /// leaves too large a gap.
    func place(
        _ info: borrowing PacketInfo,
        after earlier: borrowing PreviousSpans
    ) -> (span: SequenceSpan, index: Int64)? {
        var bound = Int64.max
        var span = current
        var age = 0
        while true {
            if span.matches(info) {
                let index = info.number + span.offset
                if index >= span.first, index < bound {
                    guard isRecent(index), earlier.allowsStep(from: highest, to: index)
                    else { return nil }
                    return (span, index)
                }
            }
            // A span that padding began may begin past the one after it.
            bound = min(bound, span.first)
            age += 1
            guard let older = earlier[age: age] else { return nil }
            span = older
        }
    }

    /// Returns the incoming packet behind an outgoing sequence number, if it is still known.
    func original(
        of out: SequenceNumber,
        after earlier: borrowing PreviousSpans
    ) -> (span: SequenceSpan, number: Int64, index: Int64)? {
        guard hasStarted else { return nil }
        let index = highest + Int64(out.distance(from: SequenceNumber(truncating: Int(highest))))
        guard index <= highest, isRecent(index) else { return nil }
        var span = current
        var age = 0
        while index < span.first {
            age += 1
            guard let older = earlier[age: age] else { return nil }
            span = older
        }
        return (span, index - span.offset, index)
    }

    /// Whether an index is within a receiver's replay window.
    private func isRecent(_ index: Int64) -> Bool {
        highest - index < Int64(SRTPSession.replayWindow)
    }

    /// Records that `index` is used; call it before `sent` or `filled`, unless it is `highest + 1`.
    ///
    /// Indexes that it passes over may still be sent. A used index may not be used again.
    func use(_ index: Int64, after earlier: inout PreviousSpans) {
        if index > highest {
            earlier.passOver(highest &+ 1..<index)
        } else {
            earlier.use(index)
        }
    }

    /// Records an empty packet sent at `index`.
    mutating func filled(index: Int64) { highest = max(highest, index) }

    /// Gives back the indexes from `index` on: their packets were not sent and never will be.
    mutating func retract(before index: Int64, after earlier: inout PreviousSpans) {
        guard index <= highest else { return }
        highest = index &- 1
        earlier.retract(from: index)
    }

    /// Records a packet sent or paced at `index`.
    mutating func sent(_ info: borrowing PacketInfo, index: Int64, span: SequenceSpan) {
        let timestamp = info.timestamp &+ span.timestampOffset
        let picture = info.pictureID &+ span.pictureOffset
        if index > highest {
            highest = index
            hasStarted = true
        } else {
            // A late packet is the newest media if only fillers were sent after it.
            let step = Int32(bitPattern: timestamp &- lastTimestamp)
            // Picture ids of VP8 and VP9 have 15 bits.
            let pictures = Int16(bitPattern: (picture &- lastPicture) << 1)
            guard step > 0 || (step == 0 && pictures > 0) else { return }
        }
        lastTimestamp = timestamp
        lastArrival = info.arrival
        lastPicture = picture
        lastTL0 = info.tl0PictureIndex &+ span.tl0Offset
    }
}
