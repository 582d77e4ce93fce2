import RTP
import TestSupport

/// One direction of a network path: it delays, loses, duplicates and reorders.
struct Link {
    /// Delay in nanoseconds.
    var delay: Int64
    var jitter: Int64 = 0
    /// Probabilities, 0 to 1.
    var loss = 0.0
    var duplication = 0.0
    var reordering = 0.0
    /// Time until which nothing arrives.
    var downUntil = Instant(nanoseconds: 0)
    /// Arrival of the last datagram that was not reordered: later ones arrive after it.
    private var lastArrival = Instant(nanoseconds: 0)

    init(delay: Int64) { self.delay = delay }

    /// Makes a path with random faults; half are clean.
    init(using random: inout SeededRandom) {
        delay = random.pick(500_000...60_000_000)
        guard random.chance(0.5) else { return }
        jitter = random.pick(0...20_000_000)
        loss = [0.0, 0.01, 0.05, 0.2].randomElement(using: &random) ?? 0
        duplication = [0.0, 0.02, 0.1].randomElement(using: &random) ?? 0
        reordering = [0.0, 0.02, 0.1].randomElement(using: &random) ?? 0
    }

    /// Ends the faults; the delay stays.
    mutating func heal() {
        self = Self(delay: delay)
    }

    /// Returns a datagram's arrival times: none, one or two.
    mutating func arrivals(
        at now: Instant,
        using random: inout SeededRandom
    ) -> (first: Instant?, second: Instant?) {
        guard now >= downUntil, !random.chance(loss) else { return (nil, nil) }
        var time = now.advanced(nanoseconds: delay)
        if jitter > 0 { time = time.advanced(nanoseconds: random.pick(0...jitter)) }
        if random.chance(reordering) {
            time = time.advanced(nanoseconds: random.pick(1_000_000...80_000_000))
        } else {
            time = max(time, lastArrival)
            lastArrival = time
        }
        guard random.chance(duplication) else { return (time, nil) }
        return (time, time.advanced(nanoseconds: random.pick(0...100_000_000)))
    }
}
