import Foundation
import RTP
import Testing

@testable import SFU

/// Random layer switches, checked by a decoder model.
struct LayerSwitchTests {
    /// Total number of switches: a million in a run that `SFUD_SWITCHES` asks for.
    static let switches =
        ProcessInfo.processInfo.environment["SFUD_SWITCHES"].flatMap { Int($0) } ?? 6_000

    @Test(arguments: Coding.allCases, LayerDriver.Network.allCases)
    func `whatever layers a viewer is switched between, it sees one whole stream`(
        coding: Coding,
        network: LayerDriver.Network
    ) throws {
        var driver = try LayerDriver(coding, network, seed: 7)
        var share = Self.switches / (Coding.allCases.count * LayerDriver.Network.allCases.count)
        // Dependent layers that arrive late are the commonest cause of faults.
        if coding == .vp9Layers, network == .disordered { share *= 5 }
        while driver.switches < share { driver.step() }
        driver.finish()
        for model in driver.models {
            #expect(model.violations.isEmpty)
            #expect(model.frames > share / 4)
            #expect(model.broken * 2 < model.frames)
            #expect(network != .clean || model.fillers == 0)
            #expect(Int(model.highestLayer.spatial) == coding.spatialLayers - 1)
            #expect(Int(model.highestLayer.temporal) == coding.temporalLayers - 1)
        }
    }

    @Test(arguments: Coding.allCases)
    func `a slot gets its target layer in the end, and nothing above it`(coding: Coding) throws {
        var driver = try LayerDriver(coding, .clean, seed: 3)
        for _ in 0..<60 { driver.step() }
        // Repeats because each measurement may select another layer.
        let rest: (inout LayerDriver, Bool, Int) -> Void = { driver, isHighest, count in
            for _ in 0..<count {
                driver.step(aims: false)
                driver.retarget(atHighest: isHighest)
            }
        }
        rest(&driver, false, 60)
        let low = driver.models.map(\.arrivals)
        rest(&driver, false, 16)
        let lowest = zip(driver.models, low).map { $0.arrivals - $1 }
        rest(&driver, true, 60)
        for slot in (0..<LayerDriver.viewers).map({ SlotIndex($0) }) {
            let target = driver.call.core.forwarder.slotRecords[slot].target
            let span = driver.call.core.forwarder.slots[slot].rewriter.current
            let point = driver.call.core.forwarder.slots[slot].point
            // Measurement noise decides which of H.264's equal encodings is the highest.
            guard coding != .h264Simulcast else { continue }
            #expect(span.encoding.value == target?.encoding && span.point == point)
        }
        // A quarter of the pictures, each of up to three packets, and two keyframes.
        let isThin = coding == .h264Simulcast || lowest.allSatisfy { $0 > 0 && $0 <= 6 * 3 }
        #expect(isThin, "\(lowest)")
        driver.finish()
        let violations = driver.models.flatMap(\.violations)
        #expect(violations.isEmpty)
    }

    static let captures: [(name: String, coding: Coding)] = [
        ("vp8.pcap", .vp8Simulcast), ("contiguous_vp9.pcap", .vp9Layers),
        ("h264.pcap", .h264Simulcast),
    ]

    @Test(arguments: captures, LayerDriver.Network.allCases)
    func `captured streams are switched without a seam`(
        capture: (name: String, coding: Coding),
        network: LayerDriver.Network
    ) throws {
        let pictures = CapturedStream.pictures(capture.name, coding: capture.coding)
        // Each slice of an H.264 keyframe counts as its start, so a late first one is lost.
        let isSafe = capture.coding != .h264Simulcast || network == .clean
        guard !pictures.isEmpty, isSafe else { return }
        for seed in 1...3 as ClosedRange<UInt64> {
            var driver = try LayerDriver(capture.coding, network, seed: seed)
            for picture in pictures { driver.step(picture: picture) }
            driver.finishCapture()
            let packets = driver.models.map(\.packets)
            let violations = driver.models.flatMap(\.violations)
            #expect(packets.allSatisfy { $0 > 0 } && driver.switches > 0)
            #expect(violations.isEmpty)
        }
    }
}
