import RTP
import TestSupport

@testable import SFU
@testable import WorkerInterface

/// Origin of a synthetic packet, written at the end of its payload.
struct Origin: Hashable {
    static let size = 36

    var encoding: UInt8 = 0
    /// Sequence number with its roll-over counter.
    var number: UInt32 = 0
    /// Id of the layer frame, unique over all encodings; from 1.
    var frame: UInt32 = 0
    var timestamp: UInt32 = 0
    var spatial: UInt8 = 0
    var temporal: UInt8 = 0
    /// Position among the frame's packets; below, their number.
    var position: UInt8 = 0
    var count: UInt8 = 1
    var isKeyframe = false
    /// Ids of frames that this one depends on; 0 for none.
    var needs: [UInt32] = [0, 0, 0, 0]

    var bytes: [UInt8] {
        var bytes = [encoding, spatial, temporal, position, count, isKeyframe ? 1 : 0, 0xa5, 0x5a]
        bytes += number.bytes + frame.bytes + timestamp.bytes
        for need in needs { bytes += need.bytes }
        return bytes
    }

    init() {}

    /// Reads an origin; `nil` for a payload that has none.
    init?(payload: ArraySlice<UInt8>) {
        guard payload.count >= Self.size else { return nil }
        let tail = Array(payload.suffix(Self.size))
        guard tail[6] == 0xa5, tail[7] == 0x5a else { return nil }
        (encoding, spatial, temporal) = (tail[0], tail[1], tail[2])
        (position, count, isKeyframe) = (tail[3], tail[4], tail[5] == 1)
        (number, frame, timestamp) = (tail.u32(8), tail.u32(12), tail.u32(16))
        needs = (0..<4).map { tail.u32(20 + 4 * $0) }
    }
}

/// Codec and layer structure of a stream.
enum Coding: String, CaseIterable, Sendable {
    case vp8Simulcast, vp9Layers, av1Layers, av1Independent, h264Simulcast

    var codec: Codec {
        switch self {
        case .vp8Simulcast: .vp8
        case .vp9Layers: .vp9
        case .av1Layers, .av1Independent: .av1
        case .h264Simulcast: .h264
        }
    }

    var rids: [String?] {
        switch self {
        case .vp8Simulcast, .h264Simulcast: ["q", "h", "f"]
        case .vp9Layers, .av1Layers, .av1Independent: [nil]
        }
    }

    var spatialLayers: Int { rids.count == 1 ? 3 : 1 }
    var temporalLayers: Int { self == .h264Simulcast ? 1 : 3 }
}

/// One encoding of a stream of synthetic pictures with realistic layers.
///
/// Pictures have the temporal layers 0 2 1 2, each with all spatial layers.
struct SyntheticStream {
    static let pattern = [0, 2, 1, 2]

    let coding: Coding
    let encoding: Int
    var ssrc: UInt32
    var number: UInt32
    private(set) var timestamp: UInt32
    private var picture: UInt16
    private var frameNumber: UInt16
    private var tl0: UInt8
    private var step = 0
    private var isNew = true
    /// Last frames of each spatial layer, by temporal layer: their ids and frame numbers.
    private var last: [[(frame: UInt32, number: UInt16)]]

    init(_ coding: Coding, encoding: Int, noise: inout SeededRandom) {
        self.coding = coding
        self.encoding = encoding
        ssrc = 0x5000 + UInt32(encoding) * 0x10
        number = UInt32(65_000 + noise.next() % 500)
        timestamp = UInt32(truncatingIfNeeded: noise.next())
        picture = UInt16(noise.next() % 0x7fff)
        frameNumber = UInt16(truncatingIfNeeded: noise.next())
        tl0 = UInt8(truncatingIfNeeded: noise.next())
        last = Array(repeating: Array(repeating: (0, 0), count: 3), count: 3)
    }

    /// Makes the packets of the next picture.
    mutating func picture(
        isKeyframe: Bool,
        frames: inout UInt32,
        noise: inout SeededRandom
    ) -> [(bytes: [UInt8], origin: Origin)] {
        let isKeyframe = isKeyframe || isNew
        isNew = false
        timestamp &+= 3_000
        picture = (picture + 1) & 0x7fff
        if isKeyframe { step = 0 }
        let temporal = coding.temporalLayers == 1 ? 0 : Self.pattern[step % 4]
        if temporal == 0 { tl0 &+= 1 }
        var packets: [(bytes: [UInt8], origin: Origin)] = []
        // A frame that AV1's descriptor calls a switch must be one.
        let isFree = coding.codec == .av1 || noise.next() % 4 == 0
        let isSync = step % 4 != 3 && (step < 4 || isFree)
        for spatial in 0..<coding.spatialLayers {
            packets += frame(
                spatial,
                temporal,
                isKeyframe: isKeyframe,
                isSync: isSync,
                frames: &frames,
                noise: &noise
            )
        }
        step += 1
        return packets
    }

    private mutating func frame(
        _ spatial: Int,
        _ temporal: Int,
        isKeyframe: Bool,
        isSync: Bool,
        frames: inout UInt32,
        noise: inout SeededRandom
    ) -> [(bytes: [UInt8], origin: Origin)] {
        frames += 1
        frameNumber &+= 1
        var needs: [(frame: UInt32, number: UInt16)] = []
        if !isKeyframe {
            needs.append(last[spatial][0])
            // The first of two pictures of layer 2 precedes layer 1 of its cycle.
            if temporal > 0, !isSync { needs.append(last[spatial][1]) }
        }
        // In S modes all spatial layers begin with one keyframe, each independently.
        if spatial > 0, coding != .av1Independent {
            needs.append(last[spatial - 1][temporal])
        }
        last[spatial][temporal] = (frames, frameNumber)
        if isKeyframe { last[spatial] = Array(repeating: (frames, frameNumber), count: 3) }
        let count = 1 + Int(noise.next() % 3)
        return (0..<count).map { position in
            var origin = Origin()
            origin.encoding = UInt8(encoding)
            origin.number = number
            origin.frame = frames
            origin.timestamp = timestamp
            origin.spatial = UInt8(spatial)
            origin.temporal = UInt8(temporal)
            origin.position = UInt8(position)
            origin.count = UInt8(count)
            origin.isKeyframe = isKeyframe
            for (index, need) in needs.enumerated() { origin.needs[index] = need.frame }
            let differences = needs.map { frameNumber &- $0.number }
            let bytes = packet(origin, isSync: isSync, differences: differences)
            number += 1
            return (bytes, origin)
        }
    }

    private func packet(_ origin: Origin, isSync: Bool, differences: [UInt16]) -> [UInt8] {
        let isFirst = origin.position == 0
        let isLast = origin.position + 1 == origin.count
        let isTop = Int(origin.spatial) + 1 == coding.spatialLayers
        var elements: [(id: UInt8, data: [UInt8])] = [(4, Array("1".utf8))]
        if let rid = coding.rids[encoding] { elements.append((10, Array(rid.utf8))) }
        if coding.codec == .av1 {
            let descriptor = TestDescriptor(
                origin,
                frameNumber: frameNumber,
                isStructured: origin.isKeyframe && origin.spatial == 0 && isFirst,
                isIndependent: coding == .av1Independent,
                differences: differences
            )
            elements.append((12, descriptor.bytes))
        }
        return Media.twoByteFormPacket(
            payloadType: 96,
            sequence: UInt16(truncatingIfNeeded: origin.number),
            timestamp: origin.timestamp,
            ssrc: ssrc,
            marker: isLast && isTop,
            elements: elements,
            payload: payload(origin, isSync: isSync) + origin.bytes
        )
    }

    private func payload(_ origin: Origin, isSync: Bool) -> [UInt8] {
        let isFirst = origin.position == 0
        let isLast = origin.position + 1 == origin.count
        let isKeyframe = origin.isKeyframe
        switch coding.codec {
        case .vp8:
            let layer = origin.temporal << 6 | (isSync && origin.temporal > 0 ? 0x20 : 0)
            var bytes: [UInt8] = [isFirst ? 0x90 : 0x80, 0xe0]
            bytes += (0x8000 | picture).bytes + [tl0, layer]
            guard isFirst else { return bytes }
            return bytes
                + (isKeyframe
                    ? [0x10, 0, 0, 0x9d, 1, 0x2a, 0x40 << UInt8(encoding), 1, 0xb4, 0]
                    : [0x11, 0, 0])
        case .vp9:
            let hasStructure = isKeyframe && isFirst && origin.spatial == 0
            var flags: UInt8 = 0xa0 | (isKeyframe ? 0 : 0x40) | (isFirst ? 0x08 : 0)
            flags |= (isLast ? 0x04 : 0) | (hasStructure ? 0x02 : 0)
            let isUp = isSync && origin.temporal > 0
            let layers =
                origin.temporal << 5 | (isUp ? 0x10 : 0) | origin.spatial << 1
                | (origin.spatial > 0 ? 1 : 0)
            var bytes = [flags] + (0x8000 | picture).bytes + [layers, tl0]
            if hasStructure {
                bytes.append(0x50)
                for size in [(320, 180), (640, 360), (1_280, 720)] as [(UInt16, UInt16)] {
                    bytes += size.0.bytes + size.1.bytes
                }
            }
            return bytes
        case .av1:
            let isStart = isKeyframe && isFirst && origin.spatial == 0
            return [isStart ? 0x18 : (isFirst ? 0x10 : 0x90), 0x32]
        case .h264:
            if isKeyframe, isFirst { return [0x67, 0x42, 0xe0, 0x1f, 0x8c, 0x8d, 0x40] }
            // Later packets of a keyframe carry fragments of its picture.
            return isKeyframe ? [0x7c, 0x05] : [0x41]
        case .opus, .red:
            return []
        }
    }
}

/// Writer of dependency descriptors with three spatial and three temporal layers (RTP Payload
/// Format for AV1 §A.8).
struct TestDescriptor {
    private(set) var bytes: [UInt8] = []
    private var bit = 0

    /// Writes a descriptor; each layer has its own template, whose differences each frame replaces.
    init(
        _ origin: Origin,
        frameNumber: UInt16,
        isStructured: Bool,
        isIndependent: Bool,
        differences: [UInt16]
    ) {
        put(origin.position == 0 ? 1 : 0, 1)
        put(origin.position + 1 == origin.count ? 1 : 0, 1)
        put(UInt32(origin.spatial * 3 + origin.temporal), 6)
        put(UInt32(frameNumber), 16)
        put(isStructured ? 1 : 0, 1)
        put(0, 2)
        put(1, 1)
        put(0, 1)
        if isStructured { putStructure(isIndependent: isIndependent) }
        for difference in differences {
            // In nibbles, least significant first, of the difference less one.
            let value = UInt32(difference - 1)
            let size: UInt32 = value < 16 ? 1 : value < 256 ? 2 : 3
            put(size, 2)
            put(value, Int(4 * size))
        }
        put(0, 2)
    }

    private mutating func putStructure(isIndependent: Bool) {
        put(0, 6)
        put(8, 5)
        for layer in 0..<9 { put(layer == 8 ? 3 : layer % 3 == 2 ? 2 : 1, 2) }
        for layer in 0..<9 {
            for target in 0..<9 {
                put(Self.indication(layer, target, isIndependent: isIndependent), 2)
            }
        }
        for _ in 0..<9 { put(0, 1) }
        // No chains: ns(10) of 0.
        put(0, 3)
        put(1, 1)
        for size in [(319, 179), (639, 359), (1_279, 719)] as [(UInt32, UInt32)] {
            put(size.0, 16)
            put(size.1, 16)
        }
    }

    /// Returns libwebrtc's indication.
    ///
    /// The highest spatial layer that a frame refreshes is a switch; layers below it are required.
    private static func indication(_ layer: Int, _ target: Int, isIndependent: Bool) -> UInt32 {
        let (spatial, temporal) = (layer / 3, layer % 3)
        let (topSpatial, topTemporal) = (target / 3, target % 3)
        guard spatial <= topSpatial, temporal <= topTemporal else { return 0 }
        if spatial < topSpatial { return isIndependent ? 0 : 3 }
        return temporal == 0 ? 2 : temporal == topTemporal ? 1 : 3
    }

    private mutating func put(_ value: UInt32, _ count: Int) {
        for index in (0..<count).reversed() {
            if bit % 8 == 0 { bytes.append(0) }
            if value >> UInt32(index) & 1 != 0 { bytes[bytes.count - 1] |= 0x80 >> UInt8(bit % 8) }
            bit += 1
        }
    }
}

extension Media {
    /// Makes an RTP packet with two-byte header extensions, for elements of any length.
    static func twoByteFormPacket(
        payloadType: UInt8,
        sequence: UInt16,
        timestamp: UInt32,
        ssrc: UInt32,
        marker: Bool,
        elements: [(id: UInt8, data: [UInt8])],
        payload: [UInt8]
    ) -> [UInt8] {
        var bytes: [UInt8] = [0x90, payloadType | (marker ? 0x80 : 0)]
        bytes += sequence.bytes + timestamp.bytes + ssrc.bytes
        var block: [UInt8] = []
        for (id, data) in elements { block += [id, UInt8(data.count)] + data }
        while block.count % 4 != 0 { block.append(0) }
        return bytes + [0x10, 0x00] + UInt16(block.count / 4).bytes + block + payload
    }
}
