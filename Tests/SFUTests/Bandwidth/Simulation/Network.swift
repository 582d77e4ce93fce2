/// A flow through simulated links.
protocol SimulatedFlow: AnyObject {
    /// Bytes that have arrived, without padding.
    var received: Int { get }
    var estimate: Double { get }
    func step(at time: Int64)
}

/// Simulated flows and links in virtual time, in steps of a millisecond, with measurements.
final class SimulatedNetwork {
    /// Measurements of a period of 100 ms.
    struct Sample {
        var second: Double
        var capacity: Double
        /// Bits a second of each flow.
        var rates: [Double]
        var estimates: [Double]
        /// Longest queuing delay at the bottleneck.
        var queueMilliseconds: Double
    }

    let name: String
    let bottleneck: Bottleneck
    let flows: [any SimulatedFlow]
    private(set) var samples: [Sample] = []
    private var time: Int64 = 0
    private var before: [Int]
    private var longest: Int64 = 0

    init(_ name: String, _ bottleneck: Bottleneck, _ flows: [any SimulatedFlow]) {
        self.name = name
        self.bottleneck = bottleneck
        self.flows = flows
        before = flows.map { _ in 0 }
    }

    /// Runs until that second.
    func run(until second: Double) {
        while Double(time) < second * 1e9 {
            time += 1_000_000
            for flow in flows { flow.step(at: time) }
            longest = max(longest, bottleneck.waiting(at: time))
            if time % 100_000_000 == 0 { sample() }
        }
    }

    private func sample() {
        let totals = flows.map(\.received)
        samples.append(
            Sample(
                second: Double(time) / 1e9,
                capacity: bottleneck.properties.capacity(at: time - 1),
                rates: zip(totals, before).map { Double($0 - $1) * 80 },
                estimates: flows.map(\.estimate),
                queueMilliseconds: Double(longest) / 1e6
            )
        )
        before = totals
        longest = 0
    }

    private func samples(in seconds: ClosedRange<Double>) -> [Sample] {
        samples.filter { $0.second > seconds.lowerBound && $0.second <= seconds.upperBound }
    }

    /// Average bits a second of a flow.
    func rate(_ flow: Int, _ seconds: ClosedRange<Double>) -> Double {
        let part = samples(in: seconds)
        return part.reduce(0) { $0 + $1.rates[flow] } / Double(max(1, part.count))
    }

    func meanEstimate(_ flow: Int, _ seconds: ClosedRange<Double>) -> Double {
        let part = samples(in: seconds)
        return part.reduce(0) { $0 + $1.estimates[flow] } / Double(max(1, part.count))
    }

    /// Share of the capacity that all flows used together.
    func utilization(_ seconds: ClosedRange<Double>) -> Double {
        let part = samples(in: seconds)
        let carried = part.reduce(0) { $0 + $1.rates.reduce(0, +) }
        return carried / part.reduce(0) { $0 + $1.capacity }
    }

    /// The 95th percentile of the bottleneck's queuing delay, in milliseconds.
    func queueP95(_ seconds: ClosedRange<Double>) -> Double {
        let sorted = samples(in: seconds).map(\.queueMilliseconds).sorted()
        return sorted.isEmpty ? 0 : sorted[min(sorted.count - 1, sorted.count * 95 / 100)]
    }

    /// Returns the second from which on an estimate stays within bounds until `end`.
    func settled(_ flow: Int, within bounds: ClosedRange<Double>, until end: Double) -> Double {
        let last = samples.last { $0.second <= end && !bounds.contains($0.estimates[flow]) }
        return last?.second ?? 0
    }
}
