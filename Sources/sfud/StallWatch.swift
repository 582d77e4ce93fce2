import RTP

/// Tells which media came while the thread stood still, and so long ago that it serves nobody.
///
/// Who stopped it (a debugger, a paused machine, cores that others took) does not matter. Were all
/// of it forwarded, viewers would get it as one burst and play it late, for many seconds after.
/// A backlog of its own work is another matter, of `PressureGauge`.
struct StallWatch {
    /// In ms: below it all is forwarded.
    static let stallMilliseconds: Int64 = 500
    /// What is older goes to nobody, in ms: it is the same for what waits for a socket.
    private static let staleMilliseconds: Int64 = 200
    /// How long after a stall what came before is looked for, in ms: the wall's clock, which
    /// stamps what comes, may be set back.
    private static let searchMilliseconds: Int64 = 1_000
    /// How old the processor's time may be that a round is compared with, in ms.
    private static let markMilliseconds: Int64 = 100

    /// Unix time in nanoseconds.
    private var staleBefore = Int64.min
    private var end: Instant
    private var mark: Instant
    private var markNanoseconds: Int64

    /// `cpu` is the processor's time of the thread, in nanoseconds, here and below.
    init(at now: Instant, cpu: Int64) {
        end = now
        mark = now
        markNanoseconds = cpu
    }

    /// Notes that the thread slept; returns whether that was long enough for a stall.
    ///
    /// What comes wakes it: what came long before the end came while it stood still.
    mutating func slept(since begin: Instant, until now: Instant, wall: () -> Int64) -> Bool {
        if now > end { staleBefore = .min }
        guard now.milliseconds(since: begin) > Self.stallMilliseconds else { return false }
        note(at: now, wall())
        return true
    }

    /// Notes that the thread was at work; it stood still if the processor knows little of that.
    mutating func worked(
        since begin: Instant,
        until now: Instant,
        cpu: () -> Int64,
        wall: () -> Int64
    ) {
        guard now.milliseconds(since: mark) >= Self.markMilliseconds else { return }
        let used = cpu()
        let elapsed = now.nanoseconds(since: begin)
        if elapsed > Self.stallMilliseconds * 1_000_000, used - markNanoseconds < elapsed / 2 {
            note(at: now, wall())
        }
        mark = now
        markNanoseconds = used
    }

    private mutating func note(at now: Instant, _ wall: Int64) {
        staleBefore = wall - Self.staleMilliseconds * 1_000_000
        end = now.advanced(milliseconds: Self.searchMilliseconds)
    }

    /// Whether what came then is too old; `arrival` is Unix time in nanoseconds, 0 for unknown.
    func isStale(_ arrival: Int64) -> Bool { arrival < staleBefore && arrival > 0 }
}
