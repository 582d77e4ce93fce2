/// Histogram of the time that forwarded media spent in the daemon, with fixed bounds.
package struct ForwardingTimes: Hashable, Sendable {
    /// Samples per bucket.
    ///
    /// A bucket holds times up to the bound with the same index and above the bound before it. The
    /// last bucket holds times above all bounds.
    package private(set) var counts = [UInt64](repeating: 0, count: bounds.count + 1)
    /// Sum of all samples, in nanoseconds.
    package private(set) var totalNanoseconds: UInt64 = 0

    package init() {}

    package var count: UInt64 { counts.reduce(0, &+) }

    /// Adds a sample; a negative time, possible after the wall clock was set back, counts as 0.
    package mutating func note(nanoseconds: Int64) {
        let time = max(0, nanoseconds)
        counts[Self.bucket(of: time)] &+= 1
        totalNanoseconds &+= UInt64(time)
    }

    /// Returns the quantile `share`, 0 to 1, in nanoseconds, interpolated between the bounds; `nil`
    /// without samples.
    package func quantile(_ share: Double) -> Double? {
        let rank = Double(count) * share
        guard rank > 0 else { return nil }
        var below: UInt64 = 0
        for (index, count) in counts.enumerated() where count > 0 {
            if Double(below &+ count) >= rank {
                let low = index == 0 ? 0 : Double(Self.bounds[index - 1])
                let high = index < Self.bounds.count ? Double(Self.bounds[index]) : low
                return low + (high - low) * (rank - Double(below)) / Double(count)
            }
            below &+= count
        }
        return nil
    }

    package static func += (sum: inout Self, other: Self) {
        for index in sum.counts.indices { sum.counts[index] &+= other.counts[index] }
        sum.totalNanoseconds &+= other.totalNanoseconds
    }

    /// Returns the index of the first bound that is not below `time`, one or two steps from the
    /// start of its octave.
    private static func bucket(of time: Int64) -> Int {
        var index = octaves[Int64.bitWidth - time.leadingZeroBitCount]
        while index < bounds.count, bounds[index] < time { index += 1 }
        return index
    }

    /// Bucket of the shortest time with a given number of bits, indexed by that number.
    private static let octaves: [Int] = (0...63).map { bits in
        let shortest: Int64 = bits == 0 ? 0 : 1 << (bits - 1)
        return bounds.firstIndex { $0 >= shortest } ?? bounds.count
    }

    /// Bucket bounds from 10 µs to 1 s in steps of about 1.6, in nanoseconds.
    package static let bounds: [Int64] =
        [10_000, 100_000, 1_000_000, 10_000_000, 100_000_000].flatMap { decade in
            [10, 16, 25, 40, 63].map { decade / 10 * $0 }
        } + [1_000_000_000]
}
