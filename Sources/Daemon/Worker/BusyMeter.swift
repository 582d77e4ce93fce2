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

/// Meter of a thread's CPU share of one core, over at least a second.
struct LoadMeter {
    private var since: Instant
    private var cpuThen: Int64
    private var last = 0.0

    init(at now: Instant, cpu: Int64) {
        since = now
        cpuThen = cpu
    }

    /// Returns the share, 0 to 1; `cpu` is the thread's CPU time so far, in nanoseconds.
    mutating func share(at now: Instant, cpu: Int64) -> Double {
        let elapsed = now.nanoseconds(since: since)
        guard elapsed >= 1_000_000_000 else { return last }
        last = min(1, max(0, Double(cpu - cpuThen) / Double(elapsed)))
        since = now
        cpuThen = cpu
        return last
    }
}
