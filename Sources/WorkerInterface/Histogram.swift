/// Histogram with fixed bucket bounds, whose counts only grow.
///
/// It holds its counts in place: a sample takes no memory and retains nothing.
package struct Histogram: Hashable, Sendable, BitwiseCopyable {
    /// Quantity of the samples, which decides the unit and the bounds.
    package enum Scale: UInt8, Hashable, Sendable, BitwiseCopyable {
        /// Share of packets lost in a report's interval, 0 to 1.
        case loss
        /// Interarrival jitter, in seconds.
        case jitter
        /// Round-trip time, in seconds.
        case roundTrip
        /// Time from an offer to connected, in seconds.
        case connecting

        /// Upper bounds of the buckets but the last, which has none; inclusive and ascending.
        package var bounds: [Double] {
            switch self {
            case .loss: Self.lossBounds
            case .jitter: Self.jitterBounds
            case .roundTrip: Self.roundTripBounds
            case .connecting: Self.connectingBounds
            }
        }

        private static let lossBounds = [
            0, 0.005, 0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.5,
        ]
        private static let jitterBounds = [
            0.001, 0.002, 0.005, 0.01, 0.015, 0.02, 0.03, 0.05, 0.075, 0.1, 0.2, 0.5,
        ]
        private static let roundTripBounds = [
            0.001, 0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.5, 1,
        ]
        private static let connectingBounds = [
            0.025, 0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1, 2, 5, 10, 20,
        ]
    }

    package let scale: Scale
    private var buckets = InlineArray<13, UInt64>(repeating: 0)
    /// Sum of all samples, in the scale's unit.
    package private(set) var sum = 0.0

    package init(_ scale: Scale) { self.scale = scale }

    /// Samples per bucket; the last bucket holds those above all bounds.
    package var counts: [UInt64] { buckets.indices.map { buckets[$0] } }

    /// Number of all samples.
    package var count: UInt64 {
        var all: UInt64 = 0
        for index in buckets.indices { all &+= buckets[index] }
        return all
    }

    /// Adds a sample; one that is no number has no effect, and a negative one counts as 0.
    package mutating func add(_ sample: Double) {
        guard sample.isFinite else { return }
        let sample = max(sample, 0)
        let bounds = scale.bounds
        var index = 0
        while index < bounds.count, bounds[index] < sample { index += 1 }
        buckets[index] &+= 1
        sum += sample
    }

    /// Adds another histogram of the same scale.
    package static func += (total: inout Self, other: Self) {
        for index in total.buckets.indices { total.buckets[index] &+= other.buckets[index] }
        total.sum += other.sum
    }

    package static func == (left: Self, right: Self) -> Bool {
        left.scale == right.scale && left.sum == right.sum && left.counts == right.counts
    }

    package func hash(into hasher: inout Hasher) {
        hasher.combine(scale)
        hasher.combine(counts)
    }
}
