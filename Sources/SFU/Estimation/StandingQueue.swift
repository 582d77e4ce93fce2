/// Queuing delay on the path: one-way delay above its recent minimum.
///
/// The delay's trend is flat while a queue is full, so the trend alone cannot tell full from empty.
/// A queue that never empties although we send less is held by a loss-based flow.
struct StandingQueue {
    /// Lengths of the stretches whose minimum delay is kept, in nanoseconds.
    ///
    /// Eight long stretches give the path's base delay, four short ones the present delay.
    private static let longStretch: Int64 = 8_000_000_000
    private static let shortStretch: Int64 = 750_000_000
    private static let smoothing = 0.05
    /// Queuing delay in nanoseconds that counts as held if it persists for that many short
    /// stretches.
    private static let held: Int64 = 40_000_000
    private static let heldStretches = 4

    /// Differences in nanoseconds between the minima of short stretches up to which the delay is
    /// steady.
    private static let steady: Int64 = 5_000_000
    /// Nanoseconds for which it has been so at least.
    static let steadyTime = 3 &* shortStretch

    private var own = Minima()
    private var present = Minima()
    /// Queuing delay in nanoseconds, smoothed over about twenty packets.
    private(set) var delay = 0.0
    /// Queuing delay of the last packet, in nanoseconds.
    private(set) var latest: Int64 = 0

    /// Adds a packet's one-way delay; the two clocks run at the same speed.
    mutating func add(sent: Int64, arrived: Int64) {
        let oneWay = arrived &- sent
        own.add(oneWay, at: sent, stretch: Self.longStretch)
        present.add(oneWay, at: sent, stretch: Self.shortStretch)
        latest = oneWay &- own.least(of: 8)
        delay += Self.smoothing * (Double(latest) - delay)
    }

    /// Queuing delay in nanoseconds, smoothed, without a delay that has come to stay.
    ///
    /// A delay that stays the same is no queue, but that of a longer path.
    var excess: Double {
        guard isSteady else { return delay }
        return delay - Double(present.least(of: Self.heldStretches) &- own.least(of: 8))
    }

    /// Least queuing delay of about the last second, in nanoseconds.
    ///
    /// On a path that jitters it is little, unless there is a queue.
    var leastDelay: Double { Double(present.least(of: 2) &- own.least(of: 8)) }

    /// Whether the queue has not emptied for three seconds.
    var isHeld: Bool {
        present.count > Self.heldStretches
            && present.least(of: Self.heldStretches) &- own.least(of: 8) > Self.held
    }

    /// Whether the queue was equally long for two seconds.
    var isSteady: Bool {
        guard present.count > 4 else { return false }
        let (least, most) = present.range(of: 1...3)
        return most &- least <= Self.steady
    }

    /// Takes the present delay for the path's own: a route or a radio cell is another one.
    mutating func rebase() {
        own = present
        own.keep(last: Self.heldStretches)
    }

    mutating func reset() { self = StandingQueue() }
}

/// Minima over the last stretches of time.
private struct Minima {
    private var values = [8 of Int64](repeating: .max)
    private var began: Int64?
    private(set) var count = 0

    mutating func add(_ value: Int64, at time: Int64, stretch: Int64) {
        if let began, time &- began < stretch {
            values[count & 7] = min(values[count & 7], value)
        } else {
            began = time
            count &+= 1
            values[count & 7] = value
        }
    }

    /// Returns the least and the greatest minimum of some stretches, counted back from the current
    /// one.
    func range(of stretches: ClosedRange<Int>) -> (least: Int64, most: Int64) {
        var (least, most) = (Int64.max, Int64.min)
        for back in stretches {
            least = min(least, values[(count &- back) & 7])
            most = max(most, values[(count &- back) & 7])
        }
        return (least, most)
    }

    /// Forgets all but the last stretches, the current one included.
    mutating func keep(last stretches: Int) {
        for back in stretches..<8 { values[(count &- back) & 7] = .max }
    }

    /// Returns the minimum of the last stretches, the current one included.
    func least(of stretches: Int) -> Int64 {
        var least = Int64.max
        for back in 0..<stretches { least = min(least, values[(count &- back) & 7]) }
        return least
    }
}
