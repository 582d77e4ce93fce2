import RTP
import SFU

/// Detector of stale media: decides which received media is discarded because it waited too long.
///
/// After a stall, media older than 200 ms is discarded: subscribers would receive it as one burst
/// and play it late for many seconds. The cause of the stall (a debugger, a paused machine, a loss
/// of CPU time) does not matter.
///
/// When the thread is overloaded, `OverloadController` sheds load. Until it has reacted, or if it
/// cannot shed enough, the queue would grow to seconds, and the kernel would finally drop audio and
/// video alike. So video that makes the queue that long is discarded.
struct StaleMediaDetector {
    /// Shortest stall after which media is discarded, in ms.
    private static let stallMilliseconds: Int64 = 500
    /// Age above which media is discarded after a stall, in ms; send queues use the same limit.
    private static let staleMilliseconds: Int64 = 200
    /// Queue lengths in ms above which video with many subscribers, or all video, is discarded.
    private static let crowdMilliseconds: Int64 = 400
    private static let videoMilliseconds: Int64 = 800
    /// Largest credible age in ms; an older timestamp dates from before the wall clock was set.
    private static let longestMilliseconds: Int64 = 10_000
    /// Length in ms to which the queue is then shortened.
    private static let restMilliseconds: Int64 = 100
    /// Time after detection in which arrivals are compared with the cutoffs, in ms.
    ///
    /// It is bounded because the wall clock, which timestamps arrivals, may be set back.
    private static let searchMilliseconds: Int64 = 1_000
    /// Largest age of the CPU time sample that a round is compared with, in ms.
    private static let markMilliseconds: Int64 = 100
    /// Fewest datagrams of one receive call for which reading the clock is worthwhile.
    private static let queueLength = 8

    /// Cutoffs as Unix times in nanoseconds; media that arrived earlier is discarded.
    private var before = (media: Int64.min, video: Int64.min, crowds: Int64.min)
    private var end: Instant
    private var mark: Instant
    private var markNanoseconds: Int64
    private var hasLeftOut = false

    /// `cpu` is the thread's CPU time in nanoseconds, here and below.
    init(at now: Instant, cpu: Int64) {
        end = now
        mark = now
        markNanoseconds = cpu
    }

    /// Notes that the thread slept; returns whether it was stalled.
    ///
    /// Incoming datagrams wake the thread, so any that arrived long before the end of the sleep
    /// arrived during a stall.
    mutating func slept(since begin: Instant, until now: Instant, wall: () -> Int64) -> Bool {
        if now > end { before = (.min, .min, .min) }
        guard now.milliseconds(since: begin) > Self.stallMilliseconds else { return false }
        noteStall(at: now, wall())
        return true
    }

    /// Notes that the thread was busy; it was stalled if it used less than an eighth of the time as
    /// CPU time.
    mutating func worked(
        since begin: Instant,
        until now: Instant,
        cpu: () -> Int64,
        wall: () -> Int64
    ) {
        guard now.milliseconds(since: mark) >= Self.markMilliseconds else { return }
        let used = cpu()
        let elapsed = now.nanoseconds(since: begin)
        if elapsed > Self.stallMilliseconds * 1_000_000, used - markNanoseconds < elapsed / 8 {
            noteStall(at: now, wall())
        }
        mark = now
        markNanoseconds = used
    }

    private mutating func noteStall(at now: Instant, _ wall: Int64) {
        before.media = wall - Self.staleMilliseconds * 1_000_000
        end = now.advanced(milliseconds: Self.searchMilliseconds)
    }

    /// Notes the result of one receive call: the number of datagrams and the arrival of the first,
    /// as Unix time in nanoseconds.
    mutating func received(_ count: Int, first: Int64, at now: Instant, wall: () -> Int64) {
        guard count >= Self.queueLength, first > 0 else { return }
        let wall = wall()
        let waited = (wall - first) / 1_000_000
        guard waited > Self.crowdMilliseconds, waited <= Self.longestMilliseconds else { return }
        let rest = wall - Self.restMilliseconds * 1_000_000
        before.crowds = rest
        if waited > Self.videoMilliseconds { before.video = rest }
        end = now.advanced(milliseconds: Self.searchMilliseconds)
        hasLeftOut = true
    }

    /// Returns the kinds of media to discard that arrived at `arrival`: Unix time in nanoseconds, 0
    /// for unknown.
    func staleMedia(_ arrival: Int64) -> StaleMedia {
        guard arrival < max(before.crowds, before.media), arrival > 0 else { return .nothing }
        if arrival < before.media { return .everything }
        return arrival < before.video ? .video : .largeAudienceVideo
    }

    /// Returns whether a queue was too long since the last call.
    mutating func takeDiscardedVideo() -> Bool {
        defer { hasLeftOut = false }
        return hasLeftOut
    }
}
