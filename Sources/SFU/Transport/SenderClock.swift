import RTP

/// Offset between a publisher's NTP clock and the local clock, shared by all of its streams.
///
/// With one offset for audio and video, subscribers synchronize them as the publisher did.
struct SenderClock: BitwiseCopyable {
    /// Local time minus the publisher's, in nanoseconds; the smallest seen, because that sample had
    /// the least delay.
    private var offset: Int64?
    private var lastNTP = NTPTime(rawValue: 0)

    /// Largest change, in nanoseconds, that is taken for a change of delay and not of the clock.
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

    /// Converts the publisher's NTP time to the local monotonic clock.
    func instant(of ntp: NTPTime) -> Instant? {
        guard let offset else { return nil }
        let theirs = ntp.nanoseconds(since: NTPTime(rawValue: 0x8000_0000_0000_0000))
        return Instant(nanoseconds: theirs &+ offset)
    }
}
