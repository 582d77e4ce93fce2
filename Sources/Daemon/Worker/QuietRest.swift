import RTP

/// Rests of a worker without media: thousands of connected viewers of silent rooms send checks and
/// reports, and each would wake it up.
///
/// While nothing else has come for `quietNanoseconds`, all sources are left alone for
/// `restNanoseconds` after each wake-up, so that what comes meanwhile is handled together. Media, a
/// handshake or a command ends that: only the first packet after a silence is delayed.
struct QuietRest: Sendable {
    /// Time without media, handshakes and commands after which a worker rests, in nanoseconds; longer
    /// than the pauses of sound that is sent discontinuously.
    static let quietNanoseconds: Int64 = 1_000_000_000
    /// Length of a rest, in nanoseconds.
    static let restNanoseconds: Int64 = 5_000_000

    private var lastWork: Instant

    init(at now: Instant) { lastWork = now }

    /// Notes media, a handshake or a command.
    mutating func noteWork(at now: Instant) { lastWork = now }

    /// End of the rest after the round that began at `wakeTime`; `nil` for none.
    func end(after wakeTime: Instant) -> Instant? {
        guard wakeTime.nanoseconds(since: lastWork) >= Self.quietNanoseconds else { return nil }
        return wakeTime.advanced(nanoseconds: Self.restNanoseconds)
    }
}
