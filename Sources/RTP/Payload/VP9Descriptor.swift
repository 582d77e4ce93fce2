/// VP9 payload descriptor (RFC 9628 §4.2).
public struct VP9Descriptor: Equatable, Sendable {
    /// Length of the descriptor, after which the VP9 payload starts.
    public private(set) var length = 0
    private let flags: UInt8
    /// Picture id of seven or fifteen bits.
    public private(set) var pictureID: UInt16?
    public private(set) var hasLongPictureID = false
    /// Offset of the picture id in the payload, or 0.
    public private(set) var pictureIDOffset = 0
    public private(set) var temporalID: UInt8 = 0
    /// U: a receiver may switch up to this temporal layer from here.
    public private(set) var switchingUpPoint = false
    public private(set) var spatialID: UInt8 = 0
    /// D: the frame depends on the spatial layer below.
    public private(set) var interLayerDependency = false
    public private(set) var tl0PictureIndex: UInt8?
    /// Offset of TL0PICIDX in the payload, or 0.
    public private(set) var tl0PictureIndexOffset = 0
    /// Number of spatial layers, if a scalability structure is present.
    public private(set) var spatialLayerCount: Int?
    /// Offset of the sizes in the scalability structure, or 0.
    private var sizesOffset = 0
    /// Size of the lowest spatial layer, if the structure states it.
    public private(set) var smallestResolution: PictureSize?
    /// Size of the highest spatial layer, if the structure states it.
    public private(set) var largestResolution: PictureSize?

    public init?(_ payload: Span<UInt8>) {
        guard payload.count >= 1 else { return nil }
        flags = payload[0]
        var reader = ByteReader(payload, at: 1)
        if hasPictureID { readPictureID(&reader) }
        if hasLayerIndices { readLayers(&reader) }
        if isFlexible, isInterPredicted {
            // One to three reference differences; the N bit of each says whether another follows.
            var count = 1
            while reader.byte() & 1 != 0, count < 3 { count += 1 }
        }
        if hasStructure { readStructure(&reader) }
        guard !reader.isExhausted else { return nil }
        length = reader.position
    }

    private mutating func readPictureID(_ reader: inout ByteReader) {
        pictureIDOffset = reader.position
        hasLongPictureID = reader.peek & 0x80 != 0
        pictureID = hasLongPictureID ? reader.u16() & 0x7fff : UInt16(reader.byte())
    }

    private mutating func readLayers(_ reader: inout ByteReader) {
        let layers = reader.byte()
        temporalID = layers >> 5
        switchingUpPoint = layers & 0x10 != 0
        spatialID = layers >> 1 & 0x07
        interLayerDependency = layers & 0x01 != 0
        guard !isFlexible else { return }
        tl0PictureIndexOffset = reader.position
        tl0PictureIndex = reader.byte()
    }

    private mutating func readStructure(_ reader: inout ByteReader) {
        let head = reader.byte()
        let count = Int(head >> 5) + 1
        spatialLayerCount = count
        if head & 0x10 != 0 {
            sizesOffset = reader.position
            for layer in 0..<count {
                let width = UInt32(reader.u16())
                let resolution = PictureSize(width: width, height: UInt32(reader.u16()))
                if layer == 0 { smallestResolution = resolution }
                largestResolution = resolution
            }
        }
        if head & 0x08 != 0 {
            for _ in 0..<reader.byte() { reader.skip(Int(reader.byte() >> 2 & 0x03)) }
        }
    }
}

extension VP9Descriptor {
    /// Returns the size of a spatial layer in `payload`, which this describes, if stated.
    public func resolution(ofLayer layer: Int, in payload: Span<UInt8>) -> PictureSize? {
        guard sizesOffset > 0, let count = spatialLayerCount, layer >= 0, layer < count else {
            return nil
        }
        let start = sizesOffset + 4 * layer
        guard start + 4 <= payload.count else { return nil }
        return PictureSize(
            width: UInt32(payload.u16(at: start)),
            height: UInt32(payload.u16(at: start + 2))
        )
    }

    /// I: a picture id is present.
    public var hasPictureID: Bool { flags & 0x80 != 0 }
    /// P: the frame depends on earlier pictures.
    public var isInterPredicted: Bool { flags & 0x40 != 0 }
    /// L: layer indices are present.
    public var hasLayerIndices: Bool { flags & 0x20 != 0 }
    /// F: flexible mode, in which the frame lists its references.
    public var isFlexible: Bool { flags & 0x10 != 0 }
    /// B: the packet starts a layer frame.
    public var startsFrame: Bool { flags & 0x08 != 0 }
    /// E: the packet ends a layer frame.
    public var endsFrame: Bool { flags & 0x04 != 0 }
    /// V: a scalability structure is present.
    public var hasStructure: Bool { flags & 0x02 != 0 }
    /// Z: no higher spatial layer depends on this frame.
    public var isNotReferenceForUpperLayers: Bool { flags & 0x01 != 0 }

    /// Whether the packet starts a keyframe: its lowest spatial layer, without prediction.
    public var isKeyframeStart: Bool {
        !isInterPredicted && startsFrame && spatialID == 0 && !interLayerDependency
    }
}

/// Partial parser of a VP9 frame header (VP9 bitstream specification §6.2).
public enum VP9FrameHeader {
    /// Returns the size in a keyframe header, or `nil` for any other frame.
    public static func resolution(_ frame: Span<UInt8>) -> PictureSize? {
        var reader = BitReader(frame)
        guard reader.bits(2) == 2 else { return nil }  // frame_marker
        let profile = reader.bits(1) | reader.bits(1) << 1
        if profile == 3 { _ = reader.bit() }
        let showsExisting = reader.bit()
        let isInter = reader.bit()
        guard !showsExisting, !isInter else { return nil }
        _ = reader.bits(2)  // show_frame, error_resilient_mode
        guard reader.bits(24) == 0x49_8342 else { return nil }
        if profile >= 2 { _ = reader.bit() }  // ten_or_twelve_bit
        let isRGB = reader.bits(3) == 7
        if !isRGB { _ = reader.bit() }  // color_range
        if profile & 1 != 0 { _ = reader.bits(isRGB ? 1 : 3) }
        let width = reader.bits(16) + 1
        let height = reader.bits(16) + 1
        return reader.isExhausted ? nil : PictureSize(width: width, height: height)
    }
}
