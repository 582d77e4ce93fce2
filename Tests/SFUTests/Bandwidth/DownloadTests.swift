import Testing

@testable import SFU

/// A viewer whose downlink a download shares for a while, and one whose downlink only looks so.
struct DownloadTests {
    private static func settings(
        _ capacity: [(Double, Double)],
        queue: Double
    )
        -> LayeredCall.Settings
    {
        var settings = LayeredCall.Settings()
        settings.capacity = capacity.map { (second: $0.0, bitsPerSecond: $0.1) }
        settings.queueMilliseconds = queue
        settings.rates = [130e3, 380e3, 780e3]
        settings.framesPerSecond = 20
        settings.obeyingWithRamp = 1
        return settings
    }

    @Test(arguments: Scenarios.seeds)
    func `a download beside a call does not take the last layer`(seed: UInt64) throws {
        var settings = Self.settings([(0, 2e6)], queue: 200)
        settings.download = 10...30
        var call = try LayeredCall(settings, seed: seed)
        call.run(until: 50)
        let times = call.viewer.frames.map { Double($0.time) / 1e9 }
        let gaps = zip(times, times.dropFirst()).filter { begin, _ in begin > 5 }.map { $1 - $0 }
        #expect(gaps.reduce(0, max) < 1, "the longest gap in seconds")
        #expect(call.changes.last?.width == 1_280, "all comes back")
    }

    /// A queue that grows slowly because the lowest layer is a little too much for the path.
    @Test(arguments: Scenarios.seeds, [0.85, 0.93])
    func `a path that carries a little less than the lowest layer is not kept full`(
        seed: UInt64,
        share: Double
    ) throws {
        let settings = Self.settings([(0, 2e6), (10, 170e3)], queue: 1_000)
        var call = try LayeredCall(settings, seed: seed)
        call.run(until: 17)
        let least = call.call.core.transports[1].bandwidth?.estimator.least ?? 0
        try #require(least > 60_000)
        call.link.bottleneck.properties.capacity = [(0, Double(least) * share)]
        var longest: Int64 = 0
        while call.second < 50 {
            call.run(until: call.second + 0.1)
            // The queue of the step itself has to drain first.
            guard call.second > 20 else { continue }
            longest = max(longest, call.link.bottleneck.waiting(at: Int64(call.second * 1e9)))
        }
        #expect(longest < 300_000_000)
    }
}
