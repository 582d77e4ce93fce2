/// How long forwarded media was in the daemon: a histogram with fixed bounds.
package struct ForwardingTimes: Hashable, Sendable {
    /// How many took at most the bound with the same index, and longer than the one before; the
    /// last are those that took longer than any.
    package private(set) var counts = [UInt64](repeating: 0, count: bounds.count + 1)
    /// All of them together, in nanoseconds.
    package private(set) var totalNanoseconds: UInt64 = 0

    package init() {}

    package var count: UInt64 { counts.reduce(0, &+) }

    /// A time before the start, which a wall clock that was set back can make, counts as none.
    package mutating func note(nanoseconds: Int64) {
        let time = max(0, nanoseconds)
        counts[Self.bucket(of: time)] &+= 1
        totalNanoseconds &+= UInt64(time)
    }

    /// The time that `share` of them took at most, in nanoseconds, as exact as the bounds allow;
    /// `nil` where there are none.
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

    /// The first bound that is not below `time`: one or two steps from where its octave begins.
    private static func bucket(of time: Int64) -> Int {
        var index = octaves[Int64.bitWidth - time.leadingZeroBitCount]
        while index < bounds.count, bounds[index] < time { index += 1 }
        return index
    }

    /// By the bits of a time, the bucket of the shortest that has so many.
    private static let octaves: [Int] = (0...63).map { bits in
        let shortest: Int64 = bits == 0 ? 0 : 1 << (bits - 1)
        return bounds.firstIndex { $0 >= shortest } ?? bounds.count
    }

    /// 10 µs to 1 s in steps of about 1.6, in nanoseconds.
    package static let bounds: [Int64] =
        [10_000, 100_000, 1_000_000, 10_000_000, 100_000_000].flatMap { decade in
            [10, 16, 25, 40, 63].map { decade / 10 * $0 }
        } + [1_000_000_000]
}
