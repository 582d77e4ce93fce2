import Foundation
import Testing

@testable import SFU

/// Acceptance limits of bandwidth estimation and RFC 8867, in virtual time.
///
/// `docs/bandwidth.md` has the figures, which `SFUD_FIGURES=1` prints.
struct BandwidthScenarioTests {
    private func tell(_ network: SimulatedNetwork, _ seconds: ClosedRange<Double>) {
        guard ProcessInfo.processInfo.environment["SFUD_FIGURES"] != nil else { return }
        let rates = network.flows.indices.map { "\(Int(network.rate($0, seconds) / 1000))" }
        let used = Int(network.utilization(seconds) * 100)
        let queue = Int(network.queueP95(seconds))
        print(
            "FIGURE \(network.name) \(Int(seconds.lowerBound))-\(Int(seconds.upperBound)) s:",
            "\(rates.joined(separator: "/")) kbit/s, \(used) %, queue p95 \(queue) ms,",
            "estimate \(Int(network.meanEstimate(0, seconds) / 1000))"
        )
    }

    /// Expects equal flows to get from half of the even share to twice it; at least `least` of it.
    private func expectFair(
        _ network: SimulatedNetwork,
        _ flows: Range<Int>,
        _ seconds: ClosedRange<Double>,
        least: Double = 0.5
    ) {
        tell(network, seconds)
        let rates = flows.map { network.rate($0, seconds) }
        let even = rates.reduce(0, +) / Double(rates.count)
        for rate in rates {
            #expect(rate > even * least && rate < even * 2, "\(network.name): \(rates)")
        }
    }

    /// Least share of an even one soon after a change: flows that were ahead by more than the RFC's
    /// encoders can produce fall back by 15 % with each full queue only.
    private func leastShare(_ encoder: Double) -> Double { encoder > 1.5e6 ? 0.4 : 0.5 }

    /// Returns the share of the path that these many flows can fill, 1 at most.
    private func demand(
        _ flows: Double,
        _ encoder: Double,
        _ network: SimulatedNetwork,
        _ seconds: ClosedRange<Double>
    ) -> Double {
        let end = Int64(seconds.upperBound * 1e9) - 1
        return min(1, flows * encoder / network.bottleneck.properties.capacity(at: end))
    }

    @Test(arguments: Scenarios.seeds, [false, true])
    func `follows steps to 500, 800 and 100 kbit a second`(seed: UInt64, isSlow: Bool) {
        let network = isSlow ? Scenarios.slowSteps(seed: seed) : Scenarios.steps(seed: seed)
        for seconds in [22.0...25, 42...45, 90...95] { tell(network, seconds) }
        #expect((350e3...550e3).contains(network.meanEstimate(0, 22...25)))
        #expect((600e3...900e3).contains(network.meanEstimate(0, 42...45)))
        #expect((65e3...115e3).contains(network.meanEstimate(0, 90...95)))
    }

    @Test(arguments: Scenarios.seeds)
    func `10 percent of random loss leave most of 2 Mbit a second`(seed: UInt64) {
        let network = Scenarios.randomLoss(seed: seed)
        tell(network, 20...60)
        #expect(network.meanEstimate(0, 20...60) > 1e6)
        #expect(network.rate(0, 20...60) > 1e6)
    }

    @Test(arguments: [(300e3, 0.0), (1e6, 0), (1e6, 5), (3e6, 0), (6e6, 3)])
    func `uses a steady path well with a short queue`(capacity: Double, jitter: Double) {
        for seed in Scenarios.seeds {
            let network = Scenarios.steady(capacity: capacity, jitter: jitter, seed: seed)
            let seconds = 15...(network.samples.last?.second ?? 15)
            tell(network, seconds)
            #expect(network.utilization(seconds) >= 0.85)
            // At 300 kbit/s three packets alone take 100 ms.
            #expect(network.queueP95(seconds) <= (capacity < 500e3 ? 110 : 100))
        }
    }

    @Test(arguments: Scenarios.seeds)
    func `RFC 8867 5_1 follows a path that changes`(seed: UInt64) {
        let network = Scenarios.variable(seed: seed)
        for seconds in [20.0...40, 50...60, 66...80, 92...100] {
            tell(network, seconds)
            #expect(network.utilization(seconds) >= 0.8, "\(seconds)")
            #expect(network.queueP95(seconds) <= 150, "\(seconds)")
        }
    }

    @Test(arguments: Scenarios.seeds, Scenarios.encoders)
    func `RFC 8867 5_2 shares a path that changes`(seed: UInt64, encoder: Double) {
        let network = Scenarios.variableShared(seed: seed, encoder: encoder)
        for seconds in [10.0...25, 35...50, 60...75, 85...100, 110...125] {
            tell(network, seconds)
            #expect(network.utilization(seconds) >= 0.8 * demand(2, encoder, network, seconds))
            // After a sudden halving the path is shared unevenly for a while, but no flow starves.
            for flow in 0..<2 {
                let rate = network.rate(flow, seconds)
                #expect(rate > 0.1 * network.samples[0].capacity / 8, "\(seconds)")
            }
        }
        expectFair(network, 0..<2, 35...50)
        expectFair(network, 0..<2, 110...125, least: leastShare(encoder))
    }

    @Test(arguments: Scenarios.seeds)
    func `RFC 8867 5_3 bears feedback that has to queue`(seed: UInt64) {
        let network = Scenarios.congestedFeedback(seed: seed)
        for seconds in [10.0...20, 30...40, 50...60, 70...100] {
            tell(network, seconds)
            let capacity = network.bottleneck.properties.capacity(
                at: Int64(seconds.upperBound * 1e9) - 1
            )
            #expect(network.rate(0, seconds) >= 0.75 * capacity, "\(seconds)")
            #expect(network.queueP95(seconds) <= 200, "\(seconds)")
        }
    }

    @Test(arguments: Scenarios.seeds, Scenarios.encoders)
    func `RFC 8867 5_4 yields to a late flow`(seed: UInt64, encoder: Double) {
        let network = Scenarios.competing(seed: seed, encoder: encoder)
        expectFair(network, 0..<2, 32...40, least: leastShare(encoder))
        expectFair(network, 0..<3, 60...80)
        expectFair(network, 0..<3, 80...120)
        #expect(network.utilization(60...120) >= 0.85)
        #expect(network.queueP95(60...120) <= 100)
    }

    @Test(arguments: Scenarios.seeds, Scenarios.encoders)
    func `RFC 8867 5_5 is fair across round trips of 20 to 300 ms`(seed: UInt64, encoder: Double) {
        let network = Scenarios.roundTrips(seed: seed, encoder: encoder)
        let seconds = 60...(network.samples.last?.second ?? 60)
        expectFair(network, 0..<5, seconds)
        #expect(network.utilization(seconds) >= 0.85)
        #expect(network.queueP95(seconds) <= 100)
    }

    @Test(arguments: Scenarios.seeds, [300.0, 1_000])
    func `RFC 8867 5_6 neither starves a long TCP flow nor by it`(seed: UInt64, queue: Double) {
        let network = Scenarios.longTCP(queueMilliseconds: queue, seed: seed)
        tell(network, 15...120)
        #expect(network.rate(0, 15...120) >= 100e3)
        #expect(network.rate(1, 15...120) >= 100e3)
    }

    @Test(arguments: Scenarios.seeds)
    func `RFC 8867 5_7 lives on beside ten downloads`(seed: UInt64) {
        let network = Scenarios.shortTCP(seed: seed)
        let seconds = 15...(network.samples.last?.second ?? 15)
        tell(network, seconds)
        // A tenth of an even share among all twelve.
        for flow in 0..<2 { #expect(network.rate(flow, seconds) >= 16.7e3) }
    }

    @Test(arguments: Scenarios.seeds, Scenarios.encoders)
    func `RFC 8867 5_8 comes back from a pause`(seed: UInt64, encoder: Double) {
        let network = Scenarios.pause(seed: seed, encoder: encoder)
        tell(network, 20...40)
        tell(network, 45...60)
        let taken = 0.8 * demand(2, encoder, network, 48...60)
        #expect(network.utilization(48...60) >= taken, "the others take what rests")
        expectFair(network, 0..<3, 80...120)
        #expect(network.queueP95(80...120) <= 100)
    }

    @Test func `a seed determines the result`() {
        let first = Scenarios.randomLoss(seed: 9).samples
        let second = Scenarios.randomLoss(seed: 9).samples
        let same = zip(first, second).allSatisfy { one, other in
            one.rates == other.rates && one.estimates == other.estimates
        }
        #expect(first.count == second.count && same)
    }
}
