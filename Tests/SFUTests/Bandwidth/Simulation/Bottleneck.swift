import TestSupport

extension SeededRandom {
    /// Returns a number around 0, with a standard deviation of about 1 (the sum of twelve uniform
    /// ones).
    mutating func normal() -> Double {
        var sum = -6.0
        for _ in 0..<12 { sum += unit() }
        return sum
    }
}

/// Properties of a simulated path; times in nanoseconds unless named otherwise.
struct PathProperties {
    /// Capacity in bits a second from a second on; ordered by time.
    var capacity: [(second: Double, bitsPerSecond: Double)]
    var delayMilliseconds = 50.0
    var jitterMilliseconds = 0.0
    /// Share of packets lost at random.
    var loss = 0.0
    /// Packets that are lost in a row, on average; `nil` if each is lost by itself.
    var burst: Double?
    /// Longest queuing delay, in milliseconds; packets beyond it are dropped.
    var queueMilliseconds = 300.0
    /// A busy machine on the path.
    ///
    /// It delivers nothing for up to `longest`, and runs for about `running` in between.
    var stalls: (running: Double, longest: Double)?

    func capacity(at time: Int64) -> Double {
        var found = capacity[0].bitsPerSecond
        for change in capacity where Double(time) >= change.second * 1e9 {
            found = change.bitsPerSecond
        }
        return found
    }
}

/// A link with a drop-tail queue in virtual time; tells each packet's exit time on entry.
final class Bottleneck {
    var properties: PathProperties
    /// Time at which the link has sent all that it has taken.
    private var free: Int64 = 0
    private var lastExit: Int64 = 0
    private var random: SeededRandom
    private(set) var dropped = 0
    private var stall: Range<Int64> = 0..<0
    private var isLosing = false

    init(_ properties: PathProperties, seed: UInt64) {
        self.properties = properties
        random = SeededRandom(seed: seed)
    }

    /// Queuing delay of a packet that arrived now, in nanoseconds.
    func waiting(at now: Int64) -> Int64 { max(0, free - now) }

    /// Takes a packet.
    ///
    /// - Returns: Its exit time, `extra` later than the path's own delay; `nil` if it is lost.
    func send(bytes: Int, at now: Int64, extra: Int64 = 0) -> Int64? {
        guard Double(waiting(at: now)) <= properties.queueMilliseconds * 1e6 else {
            dropped += 1
            return nil
        }
        free = finish(bits: Double(bytes * 8), from: max(now, free))
        if isLost() {
            dropped += 1
            return nil
        }
        let jitter =
            properties.jitterMilliseconds > 0
            ? abs(random.normal()) * properties.jitterMilliseconds * 1e6 : 0
        let exit = free + Int64(properties.delayMilliseconds * 1e6 + jitter)
        // Jitter delays but does not reorder.
        lastExit = max(lastExit, afterStall(exit))
        return lastExit + extra
    }

    /// Returns whether the next packet is lost: by itself, or in bursts (Gilbert's model).
    private func isLost() -> Bool {
        guard properties.loss > 0 else { return false }
        guard let burst = properties.burst else { return random.unit() < properties.loss }
        let begins = properties.loss / (1 - properties.loss) / burst
        if random.unit() < (isLosing ? 1 / burst : begins) { isLosing.toggle() }
        return isLosing
    }

    /// Returns the delivery time of a packet that arrives at `time`.
    private func afterStall(_ time: Int64) -> Int64 {
        guard let stalls = properties.stalls else { return time }
        while stall.upperBound <= time {
            let begin = stall.upperBound + Int64(2 * random.unit() * stalls.running * 1e6)
            stall = begin..<begin + Int64(random.unit() * stalls.longest * 1e6)
        }
        return stall.contains(time) ? stall.upperBound : time
    }

    /// Returns the time by which so many bits have been sent, through all changes of the rate.
    private func finish(bits: Double, from start: Int64) -> Int64 {
        var time = start
        var left = bits
        for change in properties.capacity where change.second * 1e9 > Double(time) {
            let boundary = Int64(change.second * 1e9)
            let here = properties.capacity(at: time) * Double(boundary - time) / 1e9
            guard here < left else { break }
            left -= here
            time = boundary
        }
        return time + Int64(left * 1e9 / properties.capacity(at: time))
    }
}
