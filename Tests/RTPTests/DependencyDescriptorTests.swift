import TestSupport
import Testing

@testable import RTP

/// Dependency descriptor tests (RTP Payload Format for AV1, appendix A).
@Suite struct DependencyDescriptorTests {
    /// A key frame of two spatial and two temporal layers with four decode targets, two chains
    /// and sizes.
    static let keyframe: [UInt8] = {
        var writer = BitWriter()
        writer.put(0b11, bits: 2)  // start and end of frame
        writer.put(62, bits: 6)
        writer.put(0x1234, bits: 16)
        writer.put(0b10000, bits: 5)  // structure
        writer.put(62, bits: 6)  // offset of the ids
        writer.put(3, bits: 5)  // four decode targets
        for next in [1, 2, 1, 3] { writer.put(next, bits: 2) }
        for indications in [[3, 3, 3, 3], [0, 1, 0, 1], [0, 0, 3, 3], [0, 0, 0, 1]] {
            for indication in indications { writer.put(indication, bits: 2) }
        }
        writer.put(0, bits: 1)  // the first template has no references
        writer.put(0b1_0001_0, bits: 6)  // the second: 2 back
        writer.put(0b1_0000_1_0011_0, bits: 11)  // the third: 1 and 4 back
        writer.put(0b1_0000_0, bits: 6)  // the fourth: 1 back
        // Two chains of at most four: ns(5) writes 2 as 10; the targets by chain, ns(2) each.
        writer.put(0b10, bits: 2)
        for chain in [0, 0, 1, 1] { writer.put(chain, bits: 1) }
        for difference in [0, 0, 2, 1, 1, 1, 3, 2] { writer.put(difference, bits: 4) }
        writer.put(1, bits: 1)
        for value in [319, 179, 639, 359] { writer.put(value, bits: 16) }
        return writer.bytes
    }()

    @Test func `reads the part that every packet has`() throws {
        let descriptor = try #require(DependencyDescriptor(hex("bf abcd")))
        #expect(descriptor.startOfFrame)
        #expect(!descriptor.endOfFrame)
        #expect(descriptor.templateID == 63)
        #expect(descriptor.frameNumber == 0xabcd)
        #expect(!descriptor.attachesStructure)
        #expect(DependencyDescriptor(hex("bfab")) == nil)
        #expect(DependencyDescriptor(Self.keyframe)?.attachesStructure == true)
    }

    @Test func `reads a structure`() throws {
        var kept: DependencyStructure?
        let frame = try #require(FrameDependencies(Self.keyframe, structure: &kept))
        let structure = try #require(kept)
        #expect(structure.decodeTargetCount == 4)
        #expect(structure.chainCount == 2)
        #expect(structure.spatialLayerCount == 2)
        #expect(structure.temporalLayerCount == 2)
        #expect(structure.templates.map(\.spatialID) == [0, 0, 1, 1])
        #expect(structure.templates.map(\.temporalID) == [0, 1, 0, 1])
        #expect(structure.templates.map(\.frameDifferences) == [0, 0b10, 0b1001, 0b1])
        #expect(structure.protectingChains == [0, 0, 1, 1])
        let sizes = [PictureSize(width: 320, height: 180), PictureSize(width: 640, height: 360)]
        #expect(structure.resolutions == sizes)
        let layers = (0..<4).map { structure.layers(ofDecodeTarget: $0) }
        #expect(layers.map(\.spatialID) == [0, 0, 1, 1])
        #expect(layers.map(\.temporalID) == [0, 1, 0, 1])
        #expect(frame.spatialID == 0)
        #expect(frame.temporalID == 0)
        #expect(frame.activeDecodeTargets == 0b1111)
        #expect(frame.indication(ofDecodeTarget: 3) == .required)
    }

    @Test func `later frames follow their templates`() throws {
        var structure: DependencyStructure?
        _ = FrameDependencies(Self.keyframe, structure: &structure)
        // Ids wrap at 64: 62, 63, 0, 1.
        let frame = try #require(FrameDependencies(hex("c0 1236"), structure: &structure))
        #expect(frame.spatialID == 1)
        #expect(frame.temporalID == 0)
        #expect(frame.activeDecodeTargets == nil)
        #expect(frame.indication(ofDecodeTarget: 1) == .notPresent)
        #expect(frame.indication(ofDecodeTarget: 2) == .required)
        let differences = (0..<frame.frameDifferences.count).map { frame.frameDifferences[$0] }
        #expect(differences == [1, 4])
        #expect((0..<2).map { frame.chainDifferences[$0] } == [1, 1])
    }

    @Test func `a frame may differ from its template`() throws {
        var structure: DependencyStructure?
        _ = FrameDependencies(Self.keyframe, structure: &structure)
        var writer = BitWriter()
        writer.put(0xc0_1236, bits: 24)
        writer.put(0b01111, bits: 5)
        writer.put(0b0011, bits: 4)  // only the lower spatial layer is decoded
        for indication in [0, 0, 2, 1] { writer.put(indication, bits: 2) }
        writer.put(0b01_0010_10_00010000_11_111111111111_00, bits: 32)
        for difference in [200, 7] { writer.put(difference, bits: 8) }
        let frame = try #require(FrameDependencies(writer.bytes, structure: &structure))
        #expect(frame.activeDecodeTargets == 0b0011)
        #expect(frame.indication(ofDecodeTarget: 2) == .switchable)
        #expect(frame.indication(ofDecodeTarget: 3) == .discardable)
        let differences = (0..<frame.frameDifferences.count).map { frame.frameDifferences[$0] }
        #expect(differences == [3, 17, 4096])
        #expect((0..<2).map { frame.chainDifferences[$0] } == [200, 7])
    }

    @Test func `refuses an unknown template`() {
        var none: DependencyStructure?
        #expect(FrameDependencies(hex("c0 1236"), structure: &none) == nil)
        #expect(none == nil)
        for length in 0..<Self.keyframe.count {
            let cut = Array(Self.keyframe.prefix(length))
            #expect(FrameDependencies(cut, structure: &none) == nil, "\(length) bytes")
            #expect(none == nil)
        }
        var structure: DependencyStructure?
        _ = FrameDependencies(Self.keyframe, structure: &structure)
        // Template 2 is the fifth of four.
        #expect(FrameDependencies(hex("c2 1236"), structure: &structure) == nil)
        #expect(structure != nil)
    }
}

/// Video layers allocation tests (https://webrtc.googlesource.com/src,
/// `video-layers-allocation00`).
@Suite struct VideoLayersAllocationTests {
    @Test func `reads simulcast with sizes`() throws {
        // Stream 1 of 2, layer 0 each; two temporal layers, then one; 100, 300 and 1,000 kbit/s.
        let element = hex("51 40 64 ac02 e807" + "013f 00b3 1e" + "027f 0167 1e")
        let allocation = try #require(VideoLayersAllocation(element))
        #expect(allocation.streamIndex == 1)
        #expect(allocation.streamCount == 2)
        #expect(allocation.layerCount == 2)
        let (low, high) = (allocation[0], allocation[1])
        #expect(low.stream == 0)
        #expect(low.temporalLayerCount == 2)
        #expect(low.targetKilobits(temporalLayer: 0) == 100)
        #expect(low.targetKilobits(temporalLayer: 1) == 300)
        #expect(low.resolution == PictureSize(width: 320, height: 180))
        #expect(low.frameRate == 30)
        #expect(high.stream == 1)
        #expect(high.temporalLayerCount == 1)
        #expect(high.targetKilobits(temporalLayer: 0) == 1000)
        #expect(high.resolution == PictureSize(width: 640, height: 360))
    }

    @Test func `reads a bitmask for each stream`() throws {
        // Three streams with the layers {0}, {} and {0, 1}.
        let allocation = try #require(VideoLayersAllocation(hex("20 10 30 00 01 02 03")))
        let layers = (0..<allocation.layerCount).map { allocation[$0] }
        #expect(layers.map(\.stream) == [0, 2, 2])
        #expect(layers.map(\.spatialID) == [0, 0, 1])
        #expect(layers.map { $0.targetKilobits(temporalLayer: 0) } == [1, 2, 3])
        #expect(layers.allSatisfy { $0.resolution == nil })
    }

    @Test func `reads an allocation without streams`() throws {
        let allocation = try #require(VideoLayersAllocation(hex("00")))
        #expect(allocation.streamCount == 0)
        #expect(allocation.layerCount == 0)
    }

    @Test func `holds the largest allocation`() throws {
        let element = hex("3f ffffffff" + String(repeating: "ffffffffffff7f", count: 64))
        let allocation = try #require(VideoLayersAllocation(element))
        #expect(allocation.layerCount == 16)
        #expect(allocation[15].targetKilobits(temporalLayer: 3) == .max)
    }

    @Test func `refuses truncated elements`() {
        let whole = hex("51 40 64 ac02 e807" + "013f 00b3 1e" + "027f 0167 1e")
        for length in 0..<whole.count where length != 7 {
            #expect(VideoLayersAllocation(Array(whole.prefix(length))) == nil, "\(length) bytes")
        }
    }
}
