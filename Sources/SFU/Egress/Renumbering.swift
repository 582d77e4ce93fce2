import RTP

/// Turns what changes its source into one continuous stream.
///
/// A span is a stretch of outgoing numbers that one offset made. The last spans are kept, so
/// that a packet that comes late, or is asked for again, gets the number it would have had.
/// All of it counts wraps: 16 bits alone would one day give two packets one index.
///
/// It lies in its slot's first cache line; the spans before the present one lie elsewhere, and
/// are looked at for packets that the present one does not cover.
struct Renumbering: BitwiseCopyable {
    struct Span: BitwiseCopyable {
        /// The first packet index made with it.
        var first: Int64 = 0
        /// What added to a packet's number makes its index.
        var offset: Int64 = 0
        /// The encoding, and which numbering of it, that the offsets are for.
        var encoding: UInt32 = .max
        var epoch: UInt32 = 0
        var timestampOffset: UInt32 = 0
        var pictureOffset: UInt16 = 0
        var tl0Offset: UInt8 = 0
        /// Which layers of the encoding it lets through.
        var point = LayerPoint.top

        func matches(_ info: borrowing PacketInfo) -> Bool {
            guard encoding == info.encoding else { return false }
            return epoch == info.epoch
        }
    }

    /// The spans before the present one; RTP that is older than these is not sent again.
    struct Earlier: ~Copyable {
        /// Each run of packets that are left out begins one: enough for a second of sixty runs.
        static let capacity = 128

        private var spans = Trail<Span>(capacity: capacity)
        /// The indexes that may still be sent though later ones have been; made at the first.
        private var unsent = LaterBox<UnsentIndexes>()
        /// The last picture that was left out and counted, or more than any picture id.
        fileprivate var skippedPicture = UInt32.max

        /// The span that ended as the `age`-th before the present one, from 1.
        subscript(age age: Int) -> Span? { spans[age: age] }

        fileprivate mutating func append(_ span: Span) { spans.append(span) }

        fileprivate func isUnsent(_ index: Int64) -> Bool {
            unsent.isMade && unsent.value.contains(index)
        }

        fileprivate mutating func passOver(_ range: Range<Int64>) {
            if !unsent.isMade { unsent.make(UnsentIndexes()) }
            unsent.value.passOver(range)
        }

        fileprivate mutating func use(_ index: Int64) {
            if unsent.isMade { unsent.value.remove(index) }
        }

        fileprivate mutating func retract(from index: Int64) {
            if unsent.isMade { unsent.value.removeAll(from: index) }
        }
    }

    static var none: Earlier { Earlier() }

    private(set) var current = Span()
    /// The packet index (RFC 3711 §3.3.1) of the newest packet sent, or one below the first.
    private(set) var highest: Int64
    private var lastArrival = Instant(nanoseconds: 0)
    private(set) var lastTimestamp: UInt32
    private var lastPicture: UInt16 = 0
    private var lastTL0: UInt8 = 0
    /// Whether a packet was ever sent.
    private(set) var hasStarted = false

    /// Starts below 2^15, so that the first wrap is far off (RFC 3711 §3.3.1), from `random`.
    init(random: UInt64) {
        highest = Int64(random & 0x3fff) + 1
        lastTimestamp = UInt32(truncatingIfNeeded: random >> 32)
    }

    /// Begins a span with this packet: numbers go on without a gap, time by the clock.
    ///
    /// `timestamp` is the outgoing timestamp where the sender reports of both sources tell it.
    mutating func begin(
        with info: borrowing PacketInfo,
        clockRate: Int,
        timestamp: UInt32?,
        point: LayerPoint = .top,
        after earlier: inout Earlier
    ) {
        let next = highest + 1
        let outgoing = nextTimestamp(info, clockRate: clockRate, exact: timestamp)
        if hasStarted { earlier.append(current) }
        earlier.skippedPicture = .max
        current = Span(
            first: next,
            offset: next - info.number,
            encoding: info.encoding,
            epoch: info.epoch,
            timestampOffset: outgoing &- info.timestamp,
            pictureOffset: hasStarted ? lastPicture &+ 1 &- info.pictureID : 0,
            tl0Offset: hasStarted ? lastTL0 &+ 1 &- info.tl0PictureIndex : 0,
            point: point
        )
    }

    /// Lets other layers through from the packet on that gets this index, which is above all
    /// that were sent; all else goes on as it was.
    mutating func turn(to point: LayerPoint, from index: Int64, after earlier: inout Earlier) {
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

    /// Closes the numbering over a packet that is not forwarded, so that nobody misses it.
    ///
    /// Returns `false` where what came after it has been numbered already.
    mutating func skip(_ info: borrowing PacketInfo, after earlier: inout Earlier) -> Bool {
        guard current.matches(info) else { return false }
        let index = info.number + current.offset
        // Before the present span it would close a gap that the spans after have counted.
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
        current = span
        return true
    }

    /// The packet index of a packet that belongs to the present span and comes right after the
    /// newest that was sent.
    func nextIndex(of info: borrowing PacketInfo) -> Int64? {
        guard current.matches(info) else { return nil }
        let index = info.number &+ current.offset
        return index >= current.first && index == highest &+ 1 ? index : nil
    }

    /// Whether nothing was sent under an index yet.
    func isUnsent(_ index: Int64, after earlier: borrowing Earlier) -> Bool {
        index > highest || earlier.isUnsent(index)
    }

    /// Whether a packet was sent already, or one that comes after it in its numbering.
    ///
    /// A span that began with an older packet would have another index for what an earlier span
    /// has sent, so a stream never goes back.
    func hasHad(_ info: borrowing PacketInfo, after earlier: borrowing Earlier) -> Bool {
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

    /// The span and packet index of a packet, or `nil` where it is too late to be placed.
    func place(
        _ info: borrowing PacketInfo,
        after earlier: borrowing Earlier
    ) -> (span: Span, index: Int64)? {
        var bound = Int64.max
        var span = current
        var age = 0
        while true {
            if span.matches(info) {
                let index = info.number + span.offset
                if index >= span.first, index < bound {
                    return isRecent(index) ? (span, index) : nil
                }
            }
            // A span that padding began may lie past the one after it.
            bound = min(bound, span.first)
            age += 1
            guard let older = earlier[age: age] else { return nil }
            span = older
        }
    }

    /// Which incoming packet an outgoing number was, where that is still known.
    func original(
        of out: SequenceNumber,
        after earlier: borrowing Earlier
    ) -> (span: Span, number: Int64, index: Int64)? {
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

    /// Whether a receiver's replay window still takes it.
    private func isRecent(_ index: Int64) -> Bool {
        highest - index < Int64(SRTPSession.replayWindow)
    }

    /// Notes that `index` is used, before `sent` or `filled` where it is not the one after the
    /// newest: what it passes over may still be sent, and what is used once may not be again.
    func use(_ index: Int64, after earlier: inout Earlier) {
        if index > highest {
            earlier.passOver(highest &+ 1..<index)
        } else {
            earlier.use(index)
        }
    }

    /// Something empty was sent at `index`.
    mutating func filled(index: Int64) { highest = max(highest, index) }

    /// What was numbered from `index` on has not left and never will.
    mutating func retract(before index: Int64, after earlier: inout Earlier) {
        guard index <= highest else { return }
        highest = index &- 1
        earlier.retract(from: index)
    }

    /// A packet was sent at `index`, or waits to be.
    mutating func sent(_ info: borrowing PacketInfo, index: Int64, span: Span) {
        let timestamp = info.timestamp &+ span.timestampOffset
        let picture = info.pictureID &+ span.pictureOffset
        if index > highest {
            highest = index
            hasStarted = true
        } else {
            // What comes late is the newest for all that, where something empty was sent after it.
            let step = Int32(bitPattern: timestamp &- lastTimestamp)
            // VP8's and VP9's picture ids have 15 bits.
            let pictures = Int16(bitPattern: (picture &- lastPicture) << 1)
            guard step > 0 || (step == 0 && pictures > 0) else { return }
        }
        lastTimestamp = timestamp
        lastArrival = info.arrival
        lastPicture = picture
        lastTL0 = info.tl0PictureIndex &+ span.tl0Offset
    }
}
