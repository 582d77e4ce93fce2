internal import RTP

/// The clock that transport-wide feedback tells arrivals by, its 24 bits of 64 ms unwrapped.
struct RemoteClock {
    /// A step of it against ours that is no matter of queues.
    private static let leap: Int64 = 3_000_000_000

    private var reference: Int32?
    private var base: Int64 = 0
    private var heard: Int64 = 0

    /// Goes on to a message's reference time.
    ///
    /// - Returns: Whether the clock has leapt, so that nothing before compares with what comes.
    mutating func advance(to next: Int32, at now: Int64) -> Bool {
        defer {
            reference = next
            heard = now
        }
        guard let reference else {
            base = Int64(next) * Self.tick
            return false
        }
        // 24 bits wrap after 12 days.
        let step = Int64(((next &- reference) << 8) >> 8) * Self.tick
        base += step
        return abs(step - (now - heard)) > Self.leap
    }

    /// The unwrapped time of an arrival in the message that `advance` last went to.
    func time(of arrival: Int64) -> Int64 {
        base + arrival - Int64(reference ?? 0) * Self.tick
    }

    private static let tick: Int64 = 64_000_000
}
