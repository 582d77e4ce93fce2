import RTP

/// The viewer's clock as transport-wide feedback tells it, with its 24 bits of 64 ms unwrapped.
///
/// All of it is the viewer's word. The unwrapped time may leave our own clock by a bound, and is
/// anchored again beyond it, so that no series of messages adds up to a sum that overflows.
struct RemoteClock {
    /// A step against our clock that no queue explains, in nanoseconds.
    private static let leap: UInt64 = 3_000_000_000
    /// How far all steps together may leave our clock, in nanoseconds: an hour, for which a clock
    /// that is 100 ppm fast takes more than a year.
    private static let farthest: UInt64 = 3_600_000_000_000
    private static let tick: Int64 = 64_000_000

    private var reference: Int32?
    /// The unwrapped time of `reference`.
    private var base: Int64 = 0
    /// Our clock's time of the last message.
    private var heard: Int64 = 0
    /// How far the viewer's clock was ahead of ours when it was anchored.
    private var offset: Int64 = 0

    /// Goes on to a message's reference time.
    ///
    /// - Returns: Whether the clock has leapt, so that nothing before compares with what comes.
    mutating func advance(to next: Int32, at now: Int64) -> Bool {
        defer {
            reference = next
            heard = now
        }
        guard let reference else {
            anchor(at: next, now)
            return false
        }
        // 24 bits wrap after 12 days.
        let step = Int64(((next &- reference) << 8) >> 8) &* Self.tick
        let time = base &+ step
        let stretch = step &- (now &- heard)
        let drift = time &- now &- offset
        guard stretch.magnitude <= Self.leap, drift.magnitude <= Self.farthest else {
            anchor(at: next, now)
            return true
        }
        base = time
        return false
    }

    /// The unwrapped time of an arrival in the message that `advance` last went to.
    func time(of arrival: Int64) -> Int64 {
        base &+ arrival &- Int64(reference ?? 0) &* Self.tick
    }

    private mutating func anchor(at next: Int32, _ now: Int64) {
        base = Int64(next) &* Self.tick
        offset = base &- now
    }
}
