import RTP
import Testing

@testable import SFU
@testable import WorkerInterface

/// Reasons that `subscription.explain` gives.
struct LayerExplanationTests {
    @Test(arguments: Coding.allCases)
    func `each spatial layer of an encoding is named, the lowest first`(coding: Coding) throws {
        var driver = try LayerDriver(coding, .clean, seed: 5)
        for _ in 0..<60 { driver.step() }
        let slot = SlotID(index: 0, generation: 1)
        let found = driver.call.core.explain(slot, at: driver.call.now)
        let explained = try #require(found)
        #expect(explained.names == coding.rids)
        #expect(explained.offered.count == coding.rids.count * coding.spatialLayers)
        let rates = explained.offered.map(\.bitrate)
        let nests = coding.rids.count == 1 && coding != .av1Independent
        #expect(!nests || rates == rates.sorted())
        let isNamed = explained.offered.allSatisfy { coding.rids.contains($0.rid) }
        #expect(isNamed)
    }
}
