/// Overload state of a worker, and its countermeasures.
package struct WorkerOverload: Hashable, Sendable {
    /// Countermeasure; each step includes those before it.
    ///
    /// Audio is never shed: it is forwarded as long as the worker runs.
    package enum Step: Int, Hashable, Sendable, Comparable, CaseIterable {
        case none
        /// New participants are refused.
        case joins
        /// Some slots are sent only the lowest layer of their video.
        case layers
        /// Some slots are sent no video.
        case video

        package static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
    }

    package var step = Step.none
    /// Percent of the time that the thread was busy or ready to run, over some seconds.
    package var busyPercent = 0
    /// Minimum delay of media in the last interval, in milliseconds; above zero in a queue that
    /// does not drain.
    package var lagMilliseconds = 0
    /// Thousandths kept of the bitrate that all videos together would take.
    package var keptPermille = 1_000

    package init() {}
}

/// Load sample of a worker's thread since the previous one.
package struct LoadSample: BitwiseCopyable, Sendable {
    /// Share of the time that the thread did not sleep, 0 to 1, including time that others took
    /// from it.
    package var busy: Double
    /// Minimum over all batches of the time from arrival to the batch's end, in milliseconds; `nil`
    /// if no media arrived.
    package var leastLagMilliseconds: Double?
    /// Fill of the send queues, 0 to 1.
    package var backlog: Double
    /// Whether video was discarded because it had waited too long.
    package var discardedVideo: Bool

    package init(
        busy: Double,
        leastLagMilliseconds: Double?,
        backlog: Double,
        discardedVideo: Bool = false
    ) {
        self.busy = busy
        self.leastLagMilliseconds = leastLagMilliseconds
        self.backlog = backlog
        self.discardedVideo = discardedVideo
    }
}

/// Overload thresholds of a worker.
package struct OverloadLimits: Hashable, Sendable {
    /// Busy percentage from which new participants are refused, 10 to 100; they are admitted again
    /// ten below it.
    ///
    /// With 100, they are refused only while video is reduced.
    package var loadPercent = 85
    /// Lasting queue delay from which a busy worker reduces video, 5 to 10,000 ms.
    package var lagMilliseconds = 30

    package init() {}
}
