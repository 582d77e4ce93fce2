/// How long packets wait on the way: their one-way delay beyond the least that was seen lately.
///
/// The trend of the delay is flat when a queue is full, so it alone cannot tell full from empty.
/// And a queue that never empties though we send less is held by somebody who waits for loss.
struct StandingQueue {
    /// Nanoseconds of one stretch whose least delay is kept: eight of the first kind are the path's
    /// own delay, four of the second kind are the present.
    private static let longStretch: Int64 = 8_000_000_000
    private static let shortStretch: Int64 = 750_000_000
    private static let smoothing = 0.05
    /// Nanoseconds of a queue that did not get shorter for four short stretches.
    private static let held: Int64 = 40_000_000

    private var own = Minima()
    private var present = Minima()
    /// Nanoseconds, smoothed over about twenty packets.
    private(set) var delay = 0.0
    /// Nanoseconds that the last packet waited.
    private(set) var latest: Int64 = 0

    /// Adds a packet's one-way delay, between two clocks that run alike.
    mutating func add(sent: Int64, arrived: Int64) {
        let oneWay = arrived &- sent
        own.add(oneWay, at: sent, stretch: Self.longStretch)
        present.add(oneWay, at: sent, stretch: Self.shortStretch)
        latest = oneWay &- own.least(of: 8)
        delay += Self.smoothing * (Double(latest) - delay)
    }

    /// Whether the queue has not emptied for three seconds.
    var isHeld: Bool {
        present.count > 4 && present.least(of: 4) &- own.least(of: 8) > Self.held
    }

    mutating func reset() { self = StandingQueue() }
}

/// The least values of the last stretches of time.
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

    /// The least of the last stretches, the one under way among them.
    func least(of stretches: Int) -> Int64 {
        var least = Int64.max
        for back in 0..<stretches { least = min(least, values[(count &- back) & 7]) }
        return least
    }
}
