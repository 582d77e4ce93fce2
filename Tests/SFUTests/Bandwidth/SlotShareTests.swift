import RTP
import Testing

@testable import SFU
@testable import WorkerInterface

/// Backoff of a slot after switches up that its path did not carry.
struct SlotShareTests {
    private static let widths = [320, 640, 1_280]

    static func option(_ layer: Int) -> LayerOption {
        LayerOption(
            target: LayerTarget(encoding: EncodingIndex(layer), spatial: 0, temporal: 0),
            width: widths[layer],
            height: widths[layer] * 9 / 16,
            frameRate: 30,
            bitrate: 150_000 << (2 * layer)
        )
    }

    private static func second(_ second: Double) -> Instant {
        Instant(nanoseconds: Int64(second * 1e9))
    }

    static func give(
        _ share: inout SlotShare,
        _ layer: Int,
        within estimate: Int?,
        at time: Double
    ) {
        share.give(
            option(layer),
            limit: .bandwidth,
            within: estimate,
            LayerDecision(at: second(time), from: nil, to: nil, cause: .bandwidth)
        )
    }

    @Test func `a layer is left alone twice as long each time that a rise to it fails`() {
        var share = SlotShare()
        var time = 0.0
        Self.give(&share, 0, within: 600_000, at: time)
        time += 30
        for pause in [2.0, 4, 8, 16, 32, 64, 64] {
            Self.give(&share, 1, within: 600_000, at: time)
            Self.give(&share, 0, within: 500_000, at: time + 3)
            time += 3 + pause
            let early = share.mayRise(
                to: Self.option(1),
                within: 600_000,
                at: Self.second(time - 0.1)
            )
            let onTime = share.mayRise(to: Self.option(1), within: 600_000, at: Self.second(time))
            #expect(!early && onTime, "\(pause) s")
        }
    }

    @Test func `a path that carries clearly more is tried at once, and lower layers are free`() {
        var share = SlotShare()
        Self.give(&share, 0, within: 600_000, at: 0)
        for time in [30.0, 40, 50] {
            Self.give(&share, 2, within: 600_000, at: time)
            Self.give(&share, 0, within: 500_000, at: time + 1)
        }
        let now = Self.second(54)
        let retry = share.retry(after: now)
        #expect(retry == Self.second(59))
        let same = share.mayRise(to: Self.option(2), within: 700_000, at: now)
        let lower = share.mayRise(to: Self.option(1), within: 700_000, at: now)
        let better = share.mayRise(to: Self.option(2), within: 800_000, at: now)
        let unbound = share.mayRise(to: Self.option(2), within: nil, at: now)
        #expect(!same && lower && better && unbound)
        // Right after a fall no rise is tried, whatever the estimate.
        let resting = share.mayRise(to: Self.option(1), within: 800_000, at: Self.second(52))
        #expect(!resting)
    }

    @Test func `a rise that lasted has not failed`() {
        var share = SlotShare()
        Self.give(&share, 0, within: 600_000, at: 0)
        Self.give(&share, 1, within: 600_000, at: 30)
        Self.give(&share, 0, within: 500_000, at: 60)
        let retry = share.retry(after: Self.second(60))
        #expect(retry == nil)
        let rested = share.mayRise(to: Self.option(1), within: 600_000, at: Self.second(62))
        #expect(rested)
    }
}
