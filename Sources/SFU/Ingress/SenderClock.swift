import RTP

/// How far a publisher's NTP clock is from ours, one figure for all of its streams.
///
/// With one offset for audio and video alike, viewers line them up as the publisher did.
struct SenderClock: BitwiseCopyable {
    /// Ours less theirs, in nanoseconds; the smallest seen, for that had the least delay.
    private var offset: Int64?
    private var lastNTP = NTPTime(rawValue: 0)

    /// A jump by more is another clock, not another delay.
    private static let maximumStep: UInt64 = 2_000_000_000

    mutating func receive(_ ntp: NTPTime, at now: Instant) {
        guard ntp.rawValue != 0 else { return }
        let theirs = ntp.nanoseconds(since: NTPTime(rawValue: 0x8000_0000_0000_0000))
        let current = now.nanoseconds &- theirs
        guard let offset, (current &- offset).magnitude < Self.maximumStep else {
            self.offset = current
            return
        }
        self.offset = min(offset &+ 10_000, current)
    }

    /// When, on our monotonic clock, their clock showed `ntp`.
    func instant(of ntp: NTPTime) -> Instant? {
        guard let offset else { return nil }
        let theirs = ntp.nanoseconds(since: NTPTime(rawValue: 0x8000_0000_0000_0000))
        return Instant(nanoseconds: theirs &+ offset)
    }
}
