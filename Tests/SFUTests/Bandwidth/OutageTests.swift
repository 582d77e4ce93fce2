import RTP
import Testing
import WorkerInterface

@testable import SFU

/// Paths that carry nothing for a while, and then as much as before.
struct OutageTests {
    private static func settled(_ sender: inout SteadySender) -> BandwidthEstimator {
        var made = BandwidthEstimator(
            at: Instant(nanoseconds: 0),
            startBitrate: 1_000_000,
            maximum: 5_000_000
        )
        made.setWanted(1_000_000, allocated: 960_000)
        sender.run(milliseconds: 6_000, &made)
        return made
    }

    @Test(arguments: [230, 480, 980, 1_300, 2_500, 3_000, 5_000, 20_000])
    func `H12 a path keeps its estimate over an outage`(milliseconds: Int) {
        var sender = SteadySender()
        var estimator = Self.settled(&sender)
        let before = estimator.estimate
        sender.run(milliseconds: milliseconds, &estimator) { _ in true }
        var least = Int.max
        for _ in 0..<30 {
            sender.run(milliseconds: 200, &estimator)
            least = min(least, estimator.estimate)
        }
        #expect(least >= before * 9 / 10)
        #expect(estimator.explanation.lossPermille == 0)
    }

    @Test func `a path that returns with half its packets lost does not keep its estimate`() {
        var sender = SteadySender()
        var estimator = Self.settled(&sender)
        sender.run(milliseconds: 3_000, &estimator) { _ in true }
        // Every other packet is lost from now on.
        sender.run(milliseconds: 6_000, &estimator) { $0 % 2 == 0 }
        #expect(estimator.estimate < 600_000)
    }

    @Test(arguments: [
        // A policer that refills its bucket once a second.
        (period: 100, passed: 50, most: 800_000), (period: 100, passed: 70, most: 850_000),
        // A policer that passes a packet now and then.
        (period: 30, passed: 1, most: 200_000), (period: 60, passed: 2, most: 200_000),
    ])
    func `a path that keeps losing everything is congested`(period: Int, passed: Int, most: Int) {
        var sender = SteadySender()
        var estimator = Self.settled(&sender)
        sender.run(milliseconds: 15_000, &estimator) { Int($0) % period >= passed }
        #expect(estimator.estimate < most)
    }

    @Test func `a report that was lost makes no outage of a few lost packets`() {
        var sender = SteadySender()
        var estimator = Self.settled(&sender)
        let first = estimator.next
        var now = sender.now
        for index in UInt16(0)..<100 {
            estimator.sent(first &+ index, bytes: 1_200, at: now, probe: nil)
            now = now.advanced(milliseconds: 10)
        }
        let begin = sender.now.nanoseconds + 20_000_000 + sender.clockOffset
        let arrivals = (0..<100).map { begin + Int64($0) * 10_000_000 }
        let holed = arrivals[..<10] + [Int64](repeating: -1, count: 10)
        ViewerFeedback.give(Array(holed), from: first, to: &estimator, at: now)
        // The feedback on the fifty packets between is lost.
        ViewerFeedback.give(Array(arrivals[70...]), from: first &+ 70, to: &estimator, at: now)
        let state = estimator.packets.place(of: first &+ 15).map { estimator.packets[$0].state }
        #expect(state == .lost)
    }

    @Test func `silence without loss is believed`() {
        var sender = SteadySender()
        var estimator = Self.settled(&sender)
        let before = estimator.estimate
        sender.isHeard = false
        sender.run(milliseconds: 2_500, &estimator)
        sender.isHeard = true
        sender.run(milliseconds: 300, &estimator)
        #expect(estimator.estimate < before * 7 / 10, "what it was is not known")
    }
}
