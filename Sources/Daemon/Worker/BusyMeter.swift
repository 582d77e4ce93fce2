import RTP

/// Meter of the share of time that a worker's thread is busy, rather than asleep in the poller.
///
/// Time in which other threads use its core while it has work counts as busy: the delay for media
/// is the same.
struct BusyMeter {
    private var since: Instant
    private var asleep: Int64 = 0

    init(at now: Instant) { since = now }

    /// Adds time asleep that ended now.
    mutating func slept(_ nanoseconds: Int64) { asleep += max(0, nanoseconds) }

    /// Returns the share of the time since the last call that it was not asleep, 0 to 1.
    mutating func takeBusy(at now: Instant) -> Double {
        let elapsed = now.nanoseconds(since: since)
        defer {
            since = now
            asleep = 0
        }
        guard elapsed > 0 else { return 0 }
        return min(1, max(0, Double(elapsed - asleep) / Double(elapsed)))
    }
}
