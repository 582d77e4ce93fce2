import RTP

/// Subscriber's clock from transport-wide feedback, with its 24-bit count of 64 ms unwrapped.
///
/// All values come from an untrusted peer. The unwrapped time may differ from our clock by a bound
/// and is anchored again beyond it, so no series of messages adds up to an overflow.
struct RemoteClock {
    /// Largest step relative to our clock that a queue may explain, in nanoseconds.
    private static let leap: UInt64 = 3_000_000_000
    /// Largest accumulated drift from our clock, in nanoseconds.
    ///
    /// A clock that is 100 ppm fast takes more than a year to reach this hour.
    private static let farthest: UInt64 = 3_600_000_000_000
    private static let tick: Int64 = 64_000_000

    private var reference: Int32?
    /// Unwrapped time of `reference`.
    private var base: Int64 = 0
    /// Arrival of the last message on our clock.
    private var heard: Int64 = 0
    /// Lead of the subscriber's clock over ours at the last anchor.
    private var offset: Int64 = 0

    /// Advances to a message's reference time.
    ///
    /// - Returns: Whether the clock has jumped, so earlier times do not compare with later ones.
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

    /// Returns the unwrapped time of an arrival in the message last passed to `advance`.
    func time(of arrival: Int64) -> Int64 {
        base &+ arrival &- Int64(reference ?? 0) &* Self.tick
    }

    private mutating func anchor(at next: Int32, _ now: Int64) {
        base = Int64(next) &* Self.tick
        offset = base &- now
    }
}
