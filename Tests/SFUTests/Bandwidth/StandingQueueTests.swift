import Testing

@testable import SFU

/// Waits that probes are held back for, told from a longer path and from jitter.
struct StandingQueueTests {
    struct Row: CustomTestStringConvertible, Sendable {
        var testDescription: String
        /// Queuing delay in milliseconds after five seconds without one, by the milliseconds since.
        var delay: @Sendable (Int64) -> Int64
        /// Milliseconds of `excess` and of `leastDelay` after four seconds of it.
        var excess: ClosedRange<Double>
        var least: ClosedRange<Double>
    }

    static let rows = [
        Row(testDescription: "no queue", delay: { _ in 0 }, excess: 0...0, least: 0...0),
        Row(testDescription: "jitter", delay: { $0 * 7 % 41 }, excess: 15...25, least: 0...2),
        Row(
            testDescription: "a longer path",
            delay: { _ in 25 },
            excess: -1...1,
            least: 25...25
        ),
        Row(
            testDescription: "a longer path with jitter",
            delay: { 25 + $0 * 7 % 21 },
            excess: 5...15,
            least: 25...27
        ),
        Row(
            testDescription: "a queue that comes and goes",
            delay: { 30 + abs($0 % 3_000 - 1_500) / 50 },
            excess: 30...60,
            least: 30...45
        ),
    ]

    @Test(arguments: rows)
    func `a wait that stays the same is no queue`(_ row: Row) {
        var queue = StandingQueue()
        for sent in stride(from: 0 as Int64, to: 9_000, by: 10) {
            let wait = sent < 5_000 ? 0 : row.delay(sent - 5_000)
            queue.add(sent: sent * 1_000_000, arrived: (sent + 20 + wait) * 1_000_000)
        }
        #expect(row.excess.contains(queue.excess / 1e6), "\(queue.excess / 1e6)")
        #expect(row.least.contains(queue.leastDelay / 1e6), "\(queue.leastDelay / 1e6)")
    }

    @Test func `on a wide path with jitter packets wait, and the queue empties`() throws {
        var settings = LayeredCall.Settings()
        settings.jitterMilliseconds = 20
        var call = try LayeredCall(settings, seed: 1)
        call.run(until: 8)
        let situation = call.call.core.transports[1].bandwidth?.estimator.situation
        let told = try #require(situation)
        #expect(told.waiting > BandwidthEstimator.shortWait)
        #expect(told.empties)
    }
}
