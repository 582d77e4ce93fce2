import Testing
import WorkerInterface

@testable import SFU

/// The lowest layers beside a download, and on a path that only looks like one with a download.
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

    /// Bits a second that are left of 200,000 after an overuse at which 100,000 were acknowledged.
    @Test(arguments: [(0.0, 85_000.0), (60_000, 85_000), (160_000, 160_000), (500_000, 200_000)])
    func `a growing queue does not take what the lowest layers need`(
        _ least: Double,
        left: Double
    ) {
        var control = RateControl(200_000)
        _ = control.update(Self.input(.delay, fair: 1_000_000, least: least), at: 1_000_000_000)
        #expect(abs(control.estimate - left) < 1)
    }

    @Test(arguments: [(0.0, 170_000.0), (180_000, 180_000), (500_000, 200_000)])
    func `nor does a loss beside a download`(_ least: Double, left: Double) {
        var control = RateControl(200_000)
        _ = control.update(Self.input(.loss, fair: 50_000, least: least), at: 1_000_000_000)
        #expect(abs(control.estimate - left) < 1)
    }

    private static func input(
        _ rule: Contention.Rule,
        fair: Double,
        least: Double
    ) -> RateControl.Input {
        RateControl.Input(
            usage: .over,
            acknowledged: 100_000,
            bottleneckRate: nil,
            isBottleneckSure: false,
            roundTrip: 200_000_000,
            waiting: 150_000_000,
            rule: rule,
            isRateOfProbe: false,
            isQueueOfProbe: false,
            fair: fair,
            floor: 0,
            least: least,
            isApplicationLimited: false,
            bounds: 10_000...5_000_000
        )
    }

    /// A queue that grows slowly because the lowest layer is a little too much for the path.
    @Test(arguments: [13.0, 17], [0, 0.01])
    func `a path that carries a little less than the lowest layer is not kept full`(
        step: Double,
        loss: Double
    ) throws {
        var settings = Self.settings([(0, 2e6), (10, 170e3)], queue: 1_000)
        settings.loss = loss
        var call = try LayeredCall(settings, seed: 1)
        call.run(until: step)
        let least = call.call.core.transports[1].bandwidth?.estimator.least ?? 0
        try #require(least > 60_000)
        call.link.bottleneck.properties.capacity = [(0, Double(least) * 0.93)]
        var longest: Int64 = 0
        while call.second < 50 {
            call.run(until: call.second + 0.1)
            // The queue of the step itself has to drain first.
            guard call.second > step + 6 else { continue }
            longest = max(longest, call.link.bottleneck.waiting(at: Int64(call.second * 1e9)))
        }
        #expect(longest < 400_000_000)
    }
}
