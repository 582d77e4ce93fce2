import Testing

@testable import SFU

/// A viewer whose downlink a download shares for a while.
struct DownloadTests {
    @Test(arguments: Scenarios.seeds)
    func `a download beside a call does not take the last layer`(seed: UInt64) throws {
        var settings = LayeredCall.Settings()
        settings.capacity = [(0, 2e6)]
        settings.queueMilliseconds = 200
        settings.rates = [130e3, 380e3, 780e3]
        settings.framesPerSecond = 20
        settings.obeyingWithRamp = 1
        settings.download = 10...30
        var call = try LayeredCall(settings, seed: seed)
        call.run(until: 50)
        let times = call.viewer.frames.map { Double($0.time) / 1e9 }
        let gaps = zip(times, times.dropFirst()).filter { begin, _ in begin > 5 }.map { $1 - $0 }
        #expect(gaps.reduce(0, max) < 1, "the longest gap in seconds")
        #expect(call.changes.last?.width == 1_280, "all comes back")
    }

    /// A path that becomes too narrow for the lowest layer delivers less than is sent.
    @Test(arguments: [200.0, 2_000])
    func `a path that becomes too narrow for the lowest layer is not kept full`(
        queue: Double
    ) throws {
        var settings = LayeredCall.Settings()
        settings.capacity = [(0, 2e6), (10, 100e3)]
        settings.queueMilliseconds = queue
        var call = try LayeredCall(settings, seed: 3)
        // A long queue takes seven seconds to drain.
        call.run(until: 22)
        let estimate = call.call.core.transports[1].bandwidth?.estimator.estimate ?? 0
        #expect(estimate < 115_000)
        #expect(call.link.bottleneck.waiting(at: Int64(call.second * 1e9)) < 300_000_000)
    }
}
