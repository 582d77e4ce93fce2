/// Latency histogram with steps of at most a sixteenth of the value.
struct LatencyHistogram: Sendable {
    private var counts = [UInt64](repeating: 0, count: 16 * 40)
    private(set) var total: UInt64 = 0
    /// Longest latency, in nanoseconds.
    private(set) var longest: Int64 = 0

    mutating func note(nanoseconds: Int64) {
        let time = UInt64(max(1, nanoseconds))
        counts[min(Self.step(time), counts.count - 1)] += 1
        total += 1
        longest = max(longest, nanoseconds)
    }

    static func += (sum: inout Self, other: Self) {
        for index in sum.counts.indices { sum.counts[index] += other.counts[index] }
        sum.total += other.total
        sum.longest = max(sum.longest, other.longest)
    }

    /// Returns the quantile `share` in milliseconds; 0 without any packets.
    func milliseconds(_ share: Double) -> Double {
        let wanted = UInt64((Double(total) * share).rounded(.up))
        guard wanted > 0 else { return 0 }
        var seen: UInt64 = 0
        for (step, count) in counts.enumerated() {
            seen += count
            if seen >= wanted {
                return Double(min(Int64(Self.bound(step)), longest)) / 1e6
            }
        }
        return Double(longest) / 1e6
    }

    /// Returns the index of a step; there are sixteen for each power of two.
    private static func step(_ time: UInt64) -> Int {
        let exponent = 63 - time.leadingZeroBitCount
        guard exponent >= 4 else { return Int(time) }
        return (exponent - 3) * 16 + Int(time >> UInt64(exponent - 4) & 15)
    }

    /// Returns the upper bound of a step.
    private static func bound(_ step: Int) -> UInt64 {
        guard step >= 16 else { return UInt64(step) }
        return (UInt64(step % 16) + 17) << UInt64(step / 16 - 1)
    }
}
