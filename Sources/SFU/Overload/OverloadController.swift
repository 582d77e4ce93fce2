package import RTP
package import WorkerInterface

/// Overload controller of a worker: load samples in, share of video to keep out.
///
/// Joins are refused when the thread is busy over some seconds, as a burst of handshakes is not a
/// lasting load. Video is reduced only on actual harm: the thread is busy and its queue does not
/// drain. The minimum delay of an interval tells that from a burst or a stall (the idea of CoDel,
/// RFC 8289 §3.2).
package struct OverloadController: Sendable {
    /// Interval between two samples, in milliseconds.
    package static let intervalMilliseconds: Int64 = 250

    private let limits: OverloadLimits
    /// Busy share of the thread, averaged over some seconds.
    private var average = 0.0
    private var lastSample: Instant?
    private var lastLag = 0.0
    /// Consecutive samples that showed harm.
    private var harms = 0
    /// Earliest time to restore video, and the delay after the next cut.
    private var mayRiseAt = Instant(nanoseconds: .min / 2)
    private var lastRise: Instant?
    private var restMilliseconds = Self.leastRest
    /// Share kept of the bitrate that all videos would take, 0 to 1.
    package private(set) var kept = 1.0
    package private(set) var refusesJoins = false

    package init(_ limits: OverloadLimits) { self.limits = limits }

    /// Processes a sample; returns whether `kept` has changed.
    package mutating func note(_ sample: LoadSample, at now: Instant) -> Bool {
        let elapsed = lastSample.map { max(0, now.milliseconds(since: $0)) }
        lastSample = now
        let busy = min(max(sample.busy, 0), 1)
        let weight = min(1, Double(elapsed ?? Self.intervalMilliseconds) / Self.memory)
        average += (busy - average) * weight
        let lag = sample.leastLagMilliseconds ?? 0
        let before = kept
        weigh(sample, busy: busy, lag: lag, at: now)
        lastLag = lag
        refusesJoins = refuses()
        return kept != before
    }

    private mutating func weigh(
        _ sample: LoadSample,
        busy: Double,
        lag: Double,
        at now: Instant
    ) {
        let limit = Double(limits.lagMilliseconds)
        let isLate = busy >= Self.fullyBusy && (lag >= limit || sample.discardedVideo)
        guard isLate || sample.backlog >= Self.fullBacklog else {
            harms = 0
            return rise(busy: busy, lag: lag, at: now)
        }
        harms += 1
        guard harms >= Self.patience else { return }
        // Earlier cuts already let the queue drain, if only slowly.
        let isDraining = isLate && lag < lastLag * Self.draining && harms > Self.patience
        guard !isDraining || sample.discardedVideo else { return }
        let isSevere = lag >= limit * Self.severity || sample.discardedVideo
        kept *= isSevere ? strongCut(lag) : Self.cut
        if kept < Self.leastKept { kept = 0 }
        if let lastRise, now.milliseconds(since: lastRise) < Self.trialMilliseconds {
            restMilliseconds = min(restMilliseconds * 2, Self.longestRest)
        }
        lastRise = nil
        mayRiseAt = now.advanced(milliseconds: restMilliseconds)
    }

    /// Returns the factor of a strong cut, which is stronger the faster the delay grows.
    private func strongCut(_ lag: Double) -> Double {
        let growth = max(0, lag - lastLag) / Double(Self.intervalMilliseconds)
        return max(Self.strongestCut, min(Self.strongCut, Self.aim / (1 + growth)))
    }

    /// Restores some video if there is room; a restore that led to another cut soon after is
    /// retried later.
    private mutating func rise(busy: Double, lag: Double, at now: Instant) {
        guard kept < 1, busy < Self.roomy, lag < Double(limits.lagMilliseconds) / 2 else { return }
        // At a very low load the earlier overload is over.
        let isCalm = busy < Self.calm
        guard isCalm || now >= mayRiseAt else { return }
        if isCalm { restMilliseconds = Self.leastRest }
        let room = Self.aim / max(busy, 0.05)
        kept = min(1, max(kept, Self.leastKept) * min(room, Self.longestStride))
        lastRise = now
        let pause = isCalm ? Self.calmPause : Self.leastRest
        mayRiseAt = max(mayRiseAt, now.advanced(milliseconds: pause))
        if isCalm { mayRiseAt = now.advanced(milliseconds: pause) }
    }

    private func refuses() -> Bool {
        guard kept >= 1 else { return true }
        // A limit of 100 percent would often be reached, so it disables this criterion and leaves
        // only harm.
        guard limits.loadPercent < 100 else { return false }
        let limit = Double(limits.loadPercent) / 100
        return average >= (refusesJoins ? limit - Self.hysteresis : limit)
    }

    /// Time of the next sample; `nil` if the worker is idle and nothing is reduced.
    package var deadline: Instant? {
        guard let lastSample, average >= Self.idle || kept < 1 else { return nil }
        return lastSample.advanced(milliseconds: Self.intervalMilliseconds)
    }

    /// Returns whether a sample is due; the first one always is.
    package func isDue(at now: Instant) -> Bool {
        guard let lastSample else { return true }
        return now.milliseconds(since: lastSample) >= Self.intervalMilliseconds
    }

    /// Returns the figures to report; the step follows from the slots whose video is reduced or
    /// stopped.
    package func pressure(reduced: Int, stopped: Int) -> WorkerOverload {
        var told = WorkerOverload()
        told.busyPercent = Int((average * 100).rounded())
        told.lagMilliseconds = Int(min(lastLag, 1_000_000).rounded())
        told.keptPermille = Int((kept * 1_000).rounded())
        if refusesJoins { told.step = .joins }
        if kept < 1, reduced > 0 { told.step = .layers }
        if kept < 1, stopped > 0 { told.step = .video }
        return told
    }

    /// Time constant of the average, in milliseconds.
    private static let memory = 4_000.0
    private static let fullyBusy = 0.9
    /// Busy share below which video may be restored, and the share aimed at.
    private static let roomy = 0.9
    private static let aim = 0.97
    /// Busy share that shows that the earlier overload is over.
    private static let calm = 0.6
    private static let hysteresis = 0.1
    private static let fullBacklog = 0.5
    /// Consecutive samples of harm before video is reduced.
    private static let patience = 3
    private static let draining = 0.9
    private static let severity = 3.0
    private static let cut = 0.94
    private static let strongCut = 0.85
    private static let strongestCut = 0.3
    private static let leastKept = 1.0 / 32
    private static let longestStride = 1.25
    private static let calmPause: Int64 = 250
    private static let leastRest: Int64 = 1_000
    private static let longestRest: Int64 = 16_000
    private static let trialMilliseconds: Int64 = 5_000
    private static let idle = 0.05
}
