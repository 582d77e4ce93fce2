import RTP

/// When each transport-wide sequence number came, until the publisher is told
/// (draft-holmer-rmcat-transport-wide-cc-extensions-01).
struct ArrivalLog: ~Copyable {
    /// Numbers that may wait for one feedback; older ones are forgotten.
    static let capacity = 1_024
    static let intervalMilliseconds: Int64 = 50

    private var times = Ring<Int64>(capacity: capacity, filledWith: -1)
    /// The first number not yet reported, wraps counted.
    private var base = 0
    private var end = 0
    private var isStarted = false
    private(set) var feedbackCount: UInt8 = 0

    var isEmpty: Bool { base == end }

    /// Notes an arrival; duplicates keep the first time.
    mutating func receive(_ number: SequenceNumber, at now: Instant) {
        if !isStarted {
            isStarted = true
            base = 65_536 &+ Int(number.rawValue)
            end = base
        }
        let newest = end &- 1
        let extended = newest &+ number.distance(from: SequenceNumber(truncating: newest))
        // Reported as lost already, or from before a jump: too late to matter.
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

    /// The first number that the next feedback reports.
    var baseNumber: SequenceNumber { SequenceNumber(truncating: base) }

    /// Copies the waiting times out, -1 for what did not come.
    func copy(into scratch: inout List<Int64>) {
        scratch.removeAll()
        for number in base..<end { scratch.append(times[number]) }
    }

    /// The first `count` numbers have been reported.
    mutating func reported(_ count: Int) {
        base &+= min(count, end &- base)
        feedbackCount &+= 1
    }
}
