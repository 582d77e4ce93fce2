/// How hard pressed a worker is, and what it does about that.
package struct WorkerPressure: Hashable, Sendable {
    /// What is given up, in this order; each step holds those before it.
    ///
    /// Audio is on no step: it goes on as long as the thread goes round.
    package enum Step: Int, Hashable, Sendable, Comparable, CaseIterable {
        case none
        /// Nobody new is let in.
        case joins
        /// Some videos are sent in their lowest layer alone.
        case layers
        /// Some videos are not sent at all.
        case video

        package static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
    }

    package var step = Step.none
    /// Percent of the time that the thread was at work, or wanted to be, over some seconds.
    package var busyPercent = 0
    /// How long what comes waits at least, in milliseconds: a queue that does not go away.
    package var lagMilliseconds = 0
    /// Thousandths kept of the bits that all videos together would take.
    package var keptPermille = 1_000

    package init() {}
}

/// What a worker's thread has measured of itself since the last time.
package struct PressureSample: BitwiseCopyable, Sendable {
    /// The share of the time that it did not sleep, 0 to 1: also what others took from it then.
    package var busy: Double
    /// From arrival to the end of the batch, the least of all batches; `nil`: no media came.
    package var leastLagMilliseconds: Double?
    /// The part of the send queues that is taken, 0 to 1.
    package var backlog: Double
    /// Whether video was left out as it had waited too long.
    package var leftOut: Bool

    package init(
        busy: Double,
        leastLagMilliseconds: Double?,
        backlog: Double,
        leftOut: Bool = false
    ) {
        self.busy = busy
        self.leastLagMilliseconds = leastLagMilliseconds
        self.backlog = backlog
        self.leftOut = leftOut
    }
}

/// At which figures a worker gives something up.
package struct PressureLimits: Hashable, Sendable {
    /// Percent of a worker's time from which on nobody new is let in, 10 to 100; ten less let
    /// people in again.
    ///
    /// 100: only while something else is given up.
    package var loadPercent = 85
    /// A queue of so many milliseconds that stays makes a busy worker send less, 5 to 10,000.
    package var lagMilliseconds = 30

    package init() {}
}
