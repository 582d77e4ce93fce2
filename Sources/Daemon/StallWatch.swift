package import RTP
package import SFU

/// Tells which media has waited too long before it is received, and is left out.
///
/// After a stall all that is older than 200 ms: were it forwarded, viewers would get it as one
/// burst and play it late, for many seconds after. Who stopped the thread (a debugger, a paused
/// machine, cores that others took) does not matter.
///
/// Where the thread is at work and has more of it than it can do, its queue is a matter of
/// `PressureGauge`. Until that has found out how much, or where it cannot, the queue would become
/// seconds, and in the end the kernel would drop what comes, sound like anything else: so video
/// that makes it that long is left out.
package struct StallWatch {
    /// In ms: below it nothing is left out.
    private static let stallMilliseconds: Int64 = 500
    /// After a stall, what is older goes to nobody, in ms, as where it waits for a socket.
    private static let staleMilliseconds: Int64 = 200
    /// A queue of so many ms costs crowds their video in it, and one of so many all of it.
    private static let crowdMilliseconds: Int64 = 400
    private static let videoMilliseconds: Int64 = 800
    /// What seems to be older, in ms, was stamped before the wall's clock was set.
    private static let longestMilliseconds: Int64 = 10_000
    /// What then is left of it, in ms.
    private static let restMilliseconds: Int64 = 100
    /// How long after it was found what came before is looked for, in ms: the wall's clock, which
    /// stamps what comes, may be set back.
    private static let searchMilliseconds: Int64 = 1_000
    /// How old the processor's time may be that a round is compared with, in ms.
    private static let markMilliseconds: Int64 = 100
    /// Datagrams of one call below which there is no queue worth a look at the clock.
    private static let queueLength = 8

    /// Unix times in nanoseconds: what came before is left out.
    private var before = (media: Int64.min, video: Int64.min, crowds: Int64.min)
    private var end: Instant
    private var mark: Instant
    private var markNanoseconds: Int64
    private var hasLeftOut = false

    /// `cpu` is the processor's time of the thread, in nanoseconds, here and below.
    package init(at now: Instant, cpu: Int64) {
        end = now
        mark = now
        markNanoseconds = cpu
    }

    /// Notes that the thread slept; returns whether that was long enough for a stall.
    ///
    /// What comes wakes it: what came long before the end came while it stood still.
    package mutating func slept(since begin: Instant, until now: Instant, wall: () -> Int64) -> Bool
    {
        if now > end { before = (.min, .min, .min) }
        guard now.milliseconds(since: begin) > Self.stallMilliseconds else { return false }
        noteStall(at: now, wall())
        return true
    }

    /// Notes that the thread was at work; it stood still if the processor knows nearly nothing of
    /// that.
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

    /// Notes what one call has received: so many datagrams, the first of which came then.
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

    /// What is left out of what came then: Unix time in nanoseconds, 0 for unknown.
    package func leaving(_ arrival: Int64) -> Leaving {
        guard arrival < max(before.crowds, before.media), arrival > 0 else { return .nothing }
        if arrival < before.media { return .everything }
        return arrival < before.video ? .video : .crowdsVideo
    }

    /// Whether a queue was found too long since the last call.
    mutating func takeLeftOut() -> Bool {
        defer { hasLeftOut = false }
        return hasLeftOut
    }
}
