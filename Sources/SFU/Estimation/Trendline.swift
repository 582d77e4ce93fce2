import WorkerInterface

/// Trendline overuse detector, which finds growing queues.
///
/// It compares the slope of the one-way delay over the last groups with an adaptive threshold
/// (draft-ietf-rmcat-gcc-02 §5.3 and §5.4; Carlucci et al., "Congestion Control for Web Real-Time
/// Communication", 2017). A fixed threshold would starve us beside TCP, whose queue varies more
/// than ours.
struct Trendline {
    private struct Sample: BitwiseCopyable {
        /// Arrival in milliseconds of the subscriber's clock since the first sample.
        var arrived: Double = 0
        /// Smoothed sum of inter-group delay variations, in milliseconds.
        var delay: Double = 0
    }

    private static let window = 20
    private static let smoothing = 0.9
    private static let gain = 4.0
    /// Largest number of steps that scales the slope.
    private static let weightiest = 60
    /// Milliseconds for which the slope must exceed the threshold.
    private static let patience = 10.0
    private static let gainUp = 0.0087
    private static let gainDown = 0.039
    private static let thresholds = 6.0...600.0
    /// Excess of a slope over the threshold beyond which it is an outlier and does not adapt it.
    private static let outlier = 15.0

    private var samples = [20 of Sample](repeating: Sample())
    private var count = 0
    private var origin: Int64 = 0
    private var sum = 0.0
    private var smoothed = 0.0
    /// Milliseconds by which the one-way delay last grew in a millisecond.
    private(set) var lastSlope = 0.0
    private var timeOver = -1.0
    private var timesOver = 0
    private var threshold = 12.5
    private var lastUpdate: Int64 = 0
    private(set) var usage = PathUsage.normal

    /// Adds the step between two groups.
    mutating func add(_ step: ArrivalGroups.Step) {
        if count == 0 { origin = step.completed }
        let sent = Double(step.sent) / 1e6
        sum += Double(step.arrived) / 1e6 - sent
        smoothed = Self.smoothing * smoothed + (1 - Self.smoothing) * sum
        samples[count % Self.window] = Sample(
            arrived: Double(step.completed &- origin) / 1e6,
            delay: smoothed
        )
        count &+= 1
        let slope = count >= Self.window ? fit() ?? lastSlope : 0
        judge(slope, sent: sent, at: step.completed)
    }

    /// Discards the samples; the threshold adapted to the path's jitter stays.
    mutating func reset() {
        var fresh = Trendline()
        fresh.threshold = threshold
        self = fresh
    }

    /// Returns the slope of the least-squares line, in milliseconds of delay per millisecond of
    /// time.
    private mutating func fit() -> Double? {
        var meanTime = 0.0
        var meanDelay = 0.0
        for index in 0..<Self.window {
            meanTime += samples[index].arrived
            meanDelay += samples[index].delay
        }
        meanTime /= Double(Self.window)
        meanDelay /= Double(Self.window)
        var numerator = 0.0
        var denominator = 0.0
        for index in 0..<Self.window {
            let time = samples[index].arrived - meanTime
            numerator += time * (samples[index].delay - meanDelay)
            denominator += time * time
        }
        return denominator > 0 ? numerator / denominator : nil
    }

    private mutating func judge(_ slope: Double, sent: Double, at now: Int64) {
        let weighted = Double(min(count, Self.weightiest)) * slope * Self.gain
        if weighted > threshold {
            // Half of the first step counts: the slope crossed the threshold somewhere in it.
            timeOver = timeOver < 0 ? sent / 2 : timeOver + sent
            timesOver &+= 1
            if timeOver > Self.patience, timesOver > 1, slope >= lastSlope {
                timeOver = 0
                timesOver = 0
                usage = .over
            }
        } else {
            timeOver = -1
            timesOver = 0
            usage = weighted < -threshold ? .under : .normal
        }
        lastSlope = slope
        adapt(to: abs(weighted), at: now)
    }

    private mutating func adapt(to weighted: Double, at now: Int64) {
        defer { lastUpdate = now }
        guard lastUpdate != 0, weighted <= threshold + Self.outlier else { return }
        let gain = weighted < threshold ? Self.gainDown : Self.gainUp
        let elapsed = min(Double(now &- lastUpdate) / 1e6, 100)
        let moved = threshold + gain * (weighted - threshold) * elapsed
        threshold = min(max(moved, Self.thresholds.lowerBound), Self.thresholds.upperBound)
    }
}
