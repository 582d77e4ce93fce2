import RTP

/// Arrival times of packets by transport-wide sequence number, kept until reported to the publisher
/// (draft-holmer-rmcat-transport-wide-cc-extensions-01).
struct ArrivalLog: ~Copyable {
    /// Sequence numbers that may be pending for one feedback; older ones are discarded.
    static let capacity = 1_024
    static let intervalMilliseconds: Int64 = 50

    private var times = Ring<Int64>(capacity: capacity, filledWith: -1)
    /// First number not reported, with wraps counted.
    private var base = 0
    private var end = 0
    private var isStarted = false
    private(set) var feedbackCount: UInt8 = 0

    var isEmpty: Bool { base == end }

    /// Records an arrival; a duplicate keeps the first time.
    mutating func receive(_ number: SequenceNumber, at now: Instant) {
        if !isStarted {
            isStarted = true
            base = 65_536 &+ Int(number.rawValue)
            end = base
        }
        let newest = end &- 1
        let extended = newest &+ number.distance(from: SequenceNumber(truncating: newest))
        // Numbers before the base were reported as lost or precede a jump: too late to matter.
        guard extended >= base else { return }
        if extended >= end {
            guard extended &- base < Self.capacity else {
                restart(at: extended, now: now)
                return
            }
            for skipped in end..<extended { times[skipped] = -1 }
            end = extended &+ 1
            times[extended] = now.nanoseconds
        } else if times[extended] < 0 {
            times[extended] = now.nanoseconds
        }
    }

    private mutating func restart(at extended: Int, now: Instant) {
        base = extended
        end = extended &+ 1
        times[extended] = now.nanoseconds
    }

    /// First number of the next feedback.
    var baseNumber: SequenceNumber { SequenceNumber(truncating: base) }

    /// Copies the pending arrival times, -1 for packets that have not arrived.
    func copy(into scratch: inout UncountedArray<Int64>) {
        scratch.removeAll()
        for number in base..<end { scratch.append(times[number]) }
    }

    /// Removes the first `count` numbers, which have been reported.
    mutating func reported(_ count: Int) {
        base &+= min(count, end &- base)
        feedbackCount &+= 1
    }
}
