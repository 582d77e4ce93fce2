import RTP
import TestSupport
import Testing
import WorkerInterface

@testable import SFU

/// Invalid viewer feedback must not make the estimate invalid, nor memory grow without bound.
struct EstimatorNonsenseTests {
    @Test(arguments: 1...8 as ClosedRange<UInt64>)
    func `nonsense leaves a rate within its bounds`(seed: UInt64) {
        var random = SeededRandom(seed: seed)
        var estimator = BandwidthEstimator(
            at: Instant(nanoseconds: 0),
            startBitrate: Int(random.next() % 1_000_000),
            maximum: 2_000_000
        )
        var now = Instant(nanoseconds: 0)
        var sequence = UInt16(truncatingIfNeeded: random.next())
        for _ in 0..<3_000 {
            now = now.advanced(nanoseconds: Int64(random.next() % 60_000_000))
            switch random.next() % 10 {
            case 0...3:
                for _ in 0..<random.next() % 20 {
                    let bytes = Int(random.next() % 1_500)
                    let probe = ProbeID(rawValue: UInt8(truncatingIfNeeded: random.next()))
                    let belongs = random.next() % 8 == 0
                    estimator.sent(sequence, bytes: bytes, at: now, probe: belongs ? probe : nil)
                    sequence &+= 1
                }
            case 4...6: Self.feedback(&random, near: sequence, &estimator, at: now)
            case 7:
                let rate = Int(truncatingIfNeeded: random.next())
                estimator.receiveREMB(rate, at: now)
                estimator.receiveLoss(
                    fraction: UInt8(truncatingIfNeeded: random.next()),
                    roundTripMilliseconds: Int(truncatingIfNeeded: random.next()),
                    at: now
                )
            case 8:
                estimator.setWanted(
                    Int(truncatingIfNeeded: random.next()) >> (random.next() % 60),
                    allocated: Int(random.next() % 10_000_000)
                )
                if let probe = estimator.takeProbe(at: now) {
                    #expect(probe.bitsPerSecond <= 2_000_000)
                    #expect(probe.bytes > 0 && probe.bytes < 100_000)
                }
            default:
                // A jump of our own sequence, or a long pause.
                if random.next() % 4 == 0 { sequence &+= UInt16(random.next() % 70) }
                if random.next() % 20 == 0 { sequence = UInt16(truncatingIfNeeded: random.next()) }
                if random.next() % 20 == 0 { now = now.advanced(milliseconds: 20_000) }
            }
            estimator.expire(at: now)
            let estimate = estimator.estimate
            let pacing = estimator.pacingRate
            let kept = estimator.packets.count
            #expect((10_000...2_000_000).contains(estimate))
            #expect(pacing >= 25_000)
            #expect(kept <= SentPackets.maximum)
            _ = estimator.explanation
        }
    }

    /// Makes well-formed feedback with arbitrary contents, or bytes that only begin like it.
    private static func feedback(
        _ random: inout SeededRandom,
        near sequence: UInt16,
        _ estimator: inout BandwidthEstimator,
        at now: Instant
    ) {
        let base = sequence &- UInt16(random.next() % 100)
        guard random.next() % 3 != 0 else {
            var bytes: [UInt8] = [0x8f, 205, 0, 9]
            for _ in 0..<36 { bytes.append(UInt8(truncatingIfNeeded: random.next())) }
            bytes[12] = UInt8(base >> 8)
            bytes[13] = UInt8(base & 0xff)
            // Often a run of more packets than possible, all lost.
            if random.next() % 2 == 0 { bytes.replaceSubrange(14..<16, with: [0x1f, 0xff]) }
            if random.next() % 2 == 0 { bytes.replaceSubrange(20..<22, with: [0x1f, 0xff]) }
            return ViewerFeedback.give(bytes, to: &estimator, at: now)
        }
        var time = Int64(random.next() % 1_000_000_000_000)
        let arrivals = (0..<1 + Int(random.next() % 60)).map { _ -> Int64 in
            time += Int64(random.next() % 40_000_000) - 10_000_000
            return random.next() % 5 == 0 ? -1 : max(0, time)
        }
        ViewerFeedback.give(
            arrivals,
            from: base,
            to: &estimator,
            at: now
        )
    }

    @Test func `feedback on what was never sent means nothing`() {
        var estimator = BandwidthEstimator(
            at: Instant(nanoseconds: 0),
            startBitrate: 300_000,
            maximum: 2_000_000
        )
        let now = Instant(nanoseconds: 1_000_000_000)
        ViewerFeedback.give([1_000_000, 2_000_000], from: 7, to: &estimator, at: now)
        #expect(estimator.explanation.source == .none)
        estimator.sent(100, bytes: 1_200, at: now, probe: nil)
        for base: UInt16 in [99, 101, 0, 32_868, 40_000] {
            let first: [Int64] = [base == 99 ? 1_000_000 : -1, -1, 5_000_000]
            let arrivals = base == 99 ? [1_000_000] : first
            ViewerFeedback.give(arrivals, from: base, to: &estimator, at: now)
        }
        #expect(estimator.explanation.source == .none)
        #expect(estimator.estimate == 300_000)
    }

    @Test(arguments: [0.2, 0.5])
    func `feedback that is lost costs little`(share: Double) {
        var settings = MediaFlow.Settings()
        settings.feedbackLoss = share
        let link = Bottleneck(PathProperties(capacity: [(0, 1e6)]), seed: 3)
        let flow = MediaFlow(settings, forward: link, seed: 4)
        let network = SimulatedNetwork("feedback-loss", link, [flow])
        network.run(until: 40)
        #expect(network.utilization(10...40) >= (share < 0.3 ? 0.75 : 0.6))
        #expect(network.queueP95(10...40) <= 200)
    }
}
