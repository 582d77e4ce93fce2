/// What has left and was not yet reported on, by transport-wide number.
///
/// Sixteen bytes a packet. It grows with what is in flight, up to `maximum`, and less before the
/// first report; past that the oldest is forgotten, and feedback on it means nothing any more.
struct SentPackets: ~Copyable {
    enum State: UInt8 {
        case unused, inFlight, arrived
        /// Told not to have come, which says nothing yet, or nothing at all.
        case missing
        case lost
    }

    struct Entry: BitwiseCopyable {
        /// When it left, in nanoseconds of our clock.
        var time: Int64 = 0
        var bytes: UInt16 = 0
        /// The probe it belongs to, 0 for none.
        var probe: UInt8 = 0
        var state = State.unused
    }

    static let maximum = 8_192
    /// Before anything is heard of them few packets need be known.
    static let unansweredMaximum = 512
    private static let first = 256

    private var ring = Ring<Entry>(capacity: 1, filledWith: Entry())
    /// The oldest number kept and the one after the newest, wraps counted.
    private(set) var oldest = 0
    private(set) var end = 0
    private var isAnswered = false
    /// Bytes that left and were reported neither as arrived nor as lost.
    private(set) var inFlight = 0

    var isEmpty: Bool { oldest == end }
    var count: Int { end &- oldest }

    /// Notes a packet; numbers left out in between count as never sent.
    mutating func append(_ sequence: UInt16, bytes: Int, at time: Int64, probe: UInt8) {
        if end == 0 {
            // Far enough up for any number that feedback may name before it.
            end = Int(sequence) &+ 0x1_0000
            oldest = end
        }
        let step = Int(Int16(bitPattern: sequence &- UInt16(truncatingIfNeeded: end)))
        if step != 0 { skip(step) }
        if count == ring.capacity { makeRoom() }
        let size = UInt16(clamping: bytes)
        ring[end] = Entry(time: time, bytes: size, probe: probe, state: .inFlight)
        end &+= 1
        inFlight &+= Int(size)
    }

    /// The place of a number that feedback names, if it is kept.
    func place(of sequence: UInt16) -> Int? {
        guard !isEmpty else { return nil }
        let newest = end &- 1
        let step = Int(Int16(bitPattern: sequence &- UInt16(truncatingIfNeeded: newest)))
        let place = newest &+ step
        return place >= oldest && step <= 0 ? place : nil
    }

    /// The number at a place that `place(of:)` or `oldest..<end` named.
    subscript(place: Int) -> Entry {
        precondition(place >= oldest && place < end)
        return ring[place]
    }

    /// Says what became of the packet at `place`.
    mutating func settle(_ place: Int, as state: State) {
        isAnswered = true
        precondition(place >= oldest && place < end)
        if ring[place].state == .inFlight { inFlight &-= Int(ring[place].bytes) }
        ring[place].state = state
    }

    /// Forgets what has arrived, and all that left before `time`.
    mutating func forget(before time: Int64) {
        while oldest < end {
            let entry = ring[oldest]
            let isDone = entry.state == .arrived || entry.state == .unused
            guard isDone || entry.time < time else { return }
            dropOldest()
        }
    }

    /// Makes room ahead of need, so that sending finds it.
    mutating func prepare() {
        if count * 2 > ring.capacity, ring.capacity < limit { grow() }
    }

    /// A jump of our own numbering: a hole if it is a small one, a new beginning otherwise.
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

    /// At most six times in a transport's life.
    private mutating func grow() {
        let capacity = max(Self.first, ring.capacity * 2)
        var larger = Ring<Entry>(capacity: capacity, filledWith: Entry())
        for place in oldest..<end { larger[place] = ring[place] }
        ring = larger
    }
}
