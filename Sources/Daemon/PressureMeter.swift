import RTP

/// Measures how a worker's thread spends its time: at work, or asleep until something comes.
///
/// What others take of the core while it has something to do counts as work: for those who wait
/// it is the same.
struct PressureMeter {
    private var since: Instant
    private var asleep: Int64 = 0

    init(at now: Instant) { since = now }

    /// Notes that the thread slept until now.
    mutating func slept(_ nanoseconds: Int64) { asleep += max(0, nanoseconds) }

    /// The share of the time since the last call that it was not asleep, 0 to 1.
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
