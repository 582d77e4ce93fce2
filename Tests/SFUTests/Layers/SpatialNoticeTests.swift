import Testing

@testable import SFU
@testable import WorkerInterface

/// Notices to the control plane about spatial layers within one encoding.
struct SpatialNoticeTests {
    static let codings: [Coding] = [.vp9Layers, .av1Layers, .av1Independent]

    /// Returns each viewer's layer notices for a series of pictures sent up to one layer.
    private static func turns(
        _ driver: inout LayerDriver,
        atHighest: Bool,
        pictures: Int
    ) -> [[LayerName?]] {
        for _ in 0..<pictures {
            driver.retarget(atHighest: atHighest)
            driver.step(aims: false)
        }
        var turns = Array(repeating: [LayerName?](), count: LayerDriver.viewers)
        for event in driver.call.takeEvents() {
            guard case .layerChanged(let slot, _, _, let to) = event else { continue }
            turns[Int(slot.index)].append(to)
        }
        return turns
    }

    @Test(arguments: codings)
    func `a switch of the spatial layer is reported once, when it takes effect`(
        coding: Coding
    ) throws {
        var driver = try LayerDriver(coding, .clean, seed: 11)
        for _ in 0..<60 { driver.step(aims: false) }
        let begun = Self.turns(&driver, atHighest: true, pictures: 1)
        #expect(begun.map(\.last) == Array(repeating: LayerName(spatial: 2), count: 3))
        for _ in 0..<3 {
            let down = Self.turns(&driver, atHighest: false, pictures: 60)
            #expect(down == Array(repeating: [LayerName(spatial: 0)], count: 3))
            let up = Self.turns(&driver, atHighest: true, pictures: 60)
            #expect(up == Array(repeating: [LayerName(spatial: 2)], count: 3))
        }
    }

    @Test func `a video of one layer has nothing to tell`() {
        #expect(LayerName().distinct == nil)
        #expect(LayerName(rid: "h").distinct == LayerName(rid: "h"))
    }
}
