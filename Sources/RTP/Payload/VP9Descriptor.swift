/// The VP9 payload descriptor (RFC 9628 §4.2).
public struct VP9Descriptor: Equatable, Sendable {
    /// The descriptor's length: the VP9 payload starts there.
    public private(set) var length = 0
    private let flags: UInt8
    /// Seven or fifteen bits.
    public private(set) var pictureID: UInt16?
    public private(set) var hasLongPictureID = false
    /// The picture id's offset in the payload, or 0.
    public private(set) var pictureIDOffset = 0
    public private(set) var temporalID: UInt8 = 0
    /// U: from here a receiver may switch up to this temporal layer.
    public private(set) var switchingUpPoint = false
    public private(set) var spatialID: UInt8 = 0
    /// D: the frame depends on the spatial layer below.
    public private(set) var interLayerDependency = false
    public private(set) var tl0PictureIndex: UInt8?
    /// The TL0PICIDX's offset in the payload, or 0.
    public private(set) var tl0PictureIndexOffset = 0
    /// The number of spatial layers, where a scalability structure comes along.
    public private(set) var spatialLayerCount: Int?
    /// Where the structure's sizes lie, or 0.
    private var sizesOffset = 0
    /// The size of the lowest spatial layer, where the structure tells it.
    public private(set) var smallestResolution: PictureSize?
    /// The size of the highest spatial layer, where the structure tells it.
    public private(set) var largestResolution: PictureSize?

    public init?(_ payload: Span<UInt8>) {
        guard payload.count >= 1 else { return nil }
        flags = payload[0]
        var reader = ByteReader(payload, at: 1)
        if hasPictureID { readPictureID(&reader) }
        if hasLayerIndices { readLayers(&reader) }
        if isFlexible, isInterPredicted {
            // One to three reference differences, each saying whether one more follows.
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
    /// The size of a spatial layer in `payload`, which this describes, where it is told.
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

    /// I.
    public var hasPictureID: Bool { flags & 0x80 != 0 }
    /// P: the frame depends on earlier pictures.
    public var isInterPredicted: Bool { flags & 0x40 != 0 }
    /// L.
    public var hasLayerIndices: Bool { flags & 0x20 != 0 }
    /// F: the frame names its references.
    public var isFlexible: Bool { flags & 0x10 != 0 }
    /// B: the packet starts a layer frame.
    public var startsFrame: Bool { flags & 0x08 != 0 }
    /// E: the packet ends a layer frame.
    public var endsFrame: Bool { flags & 0x04 != 0 }
    /// V.
    public var hasStructure: Bool { flags & 0x02 != 0 }
    /// Z: no higher spatial layer depends on this frame.
    public var isNotReferenceForUpperLayers: Bool { flags & 0x01 != 0 }

    /// Whether the packet starts a key frame: its lowest spatial layer, predicted from nothing.
    public var isKeyframeStart: Bool {
        !isInterPredicted && startsFrame && spatialID == 0 && !interLayerDependency
    }
}
