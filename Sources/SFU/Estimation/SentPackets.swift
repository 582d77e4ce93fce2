import WorkerInterface

/// History of sent packets that await feedback, by transport-wide sequence number.
///
/// It takes sixteen bytes a packet. It grows with the packets in flight, up to `maximum`, or up to
/// `unansweredMaximum` before the first feedback. When it is full, the oldest packet is dropped,
/// and feedback on it is ignored.
struct SentPackets: ~Copyable {
    enum State: UInt8 {
        case unused, inFlight, arrived
        /// Reported as not received, which is not yet, or never, taken for loss.
        case missing
        case lost
    }

    struct Entry: BitwiseCopyable {
        /// Send time, in nanoseconds of our clock.
        var time: Int64 = 0
        var bytes: UInt16 = 0
        /// Probe it belongs to; 0 for none.
        var probe: UInt8 = 0
        var state = State.unused
        /// Slot whose frame ends with this packet.
        var frame = OptionalIndex<HandleKind.Slot>.none
    }

    static let maximum = 8_192
    /// Capacity before the first feedback, when little history is needed.
    static let unansweredMaximum = 512
    private static let first = 256

    private var ring = Ring<Entry>(capacity: 1, filledWith: Entry())
    /// Oldest number kept and the one after the newest, wraps counted.
    private(set) var oldest = 0
    private(set) var end = 0
    private var isAnswered = false
    /// Bytes in flight: sent, and reported neither as received nor as missing.
    private(set) var inFlight = 0

    var isEmpty: Bool { oldest == end }
    var count: Int { end &- oldest }

    /// Appends a packet; numbers skipped in between count as never sent.
    mutating func append(
        _ sequence: UInt16,
        bytes: Int,
        at time: Int64,
        probe: UInt8,
        frame: OptionalIndex<HandleKind.Slot> = .none
    ) {
        if end == 0 {
            // High enough for any earlier number that feedback may name.
            end = Int(sequence) &+ 0x1_0000
            oldest = end
        }
        let step = Int(Int16(bitPattern: sequence &- UInt16(truncatingIfNeeded: end)))
        if step != 0 { skip(step) }
        if count == ring.capacity { makeRoom() }
        let size = UInt16(clamping: bytes)
        ring[end] = Entry(time: time, bytes: size, probe: probe, state: .inFlight, frame: frame)
        end &+= 1
        inFlight &+= Int(size)
    }

    /// Returns the place of a number that feedback names, if it is kept.
    func place(of sequence: UInt16) -> Int? {
        guard !isEmpty else { return nil }
        let newest = end &- 1
        let step = Int(Int16(bitPattern: sequence &- UInt16(truncatingIfNeeded: newest)))
        let place = newest &+ step
        return place >= oldest && step <= 0 ? place : nil
    }

    /// Entry at a place from `place(of:)` or `oldest..<end`.
    subscript(place: Int) -> Entry {
        precondition(place >= oldest && place < end)
        return ring[place]
    }

    /// Sets the outcome of the packet at `place`.
    mutating func settle(_ place: Int, as state: State) {
        isAnswered = true
        precondition(place >= oldest && place < end)
        if ring[place].state == .inFlight { inFlight &-= Int(ring[place].bytes) }
        ring[place].state = state
    }

    /// Drops arrived packets at the old end, and all packets sent before `time`.
    mutating func forget(before time: Int64) {
        while oldest < end {
            let entry = ring[oldest]
            let isDone = entry.state == .arrived || entry.state == .unused
            guard isDone || entry.time < time else { return }
            dropOldest()
        }
    }

    /// Grows ahead of need, so sending need not allocate.
    mutating func prepare() {
        if count * 2 > ring.capacity, ring.capacity < limit { grow() }
    }

    /// Handles a jump of our own numbering: a small one leaves a hole, a large one clears the
    /// history.
    private mutating func skip(_ step: Int) {
        guard step > 0, step < 64 else {
            while oldest < end { dropOldest() }
            end &+= step > 0 ? step : step &+ 0x1_0000
            oldest = end
            return
        }
        for _ in 0..<step {
            if count == ring.capacity { makeRoom() }
            ring[end] = Entry()
            end &+= 1
        }
    }

    private mutating func dropOldest() {
        if ring[oldest].state == .inFlight { inFlight &-= Int(ring[oldest].bytes) }
        oldest &+= 1
    }

    private var limit: Int { isAnswered ? Self.maximum : Self.unansweredMaximum }

    private mutating func makeRoom() {
        if ring.capacity < limit { grow() } else { dropOldest() }
    }

    /// Doubles the capacity, at most six times in a transport's life.
    private mutating func grow() {
        let capacity = max(Self.first, ring.capacity * 2)
        var larger = Ring<Entry>(capacity: capacity, filledWith: Entry())
        for place in oldest..<end { larger[place] = ring[place] }
        ring = larger
    }
}
