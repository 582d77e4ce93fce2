/// Layers that a sender currently encodes (the `video-layers-allocation00` header extension).
///
/// It holds at most four streams of four spatial layers of four temporal layers, in fixed memory.
public struct VideoLayersAllocation: Sendable {
    /// Spatial layer of one stream.
    public struct Layer: Sendable {
        public var stream: UInt8
        public var spatialID: UInt8
        /// Number of temporal layers, 1 to 4.
        public fileprivate(set) var temporalLayerCount = 1
        /// Kilobits a second of each temporal layer including those below it, saturated.
        fileprivate var kilobits: InlineArray<4, UInt32> = .init(repeating: 0)
        /// Size; `nil` if the sender omits it.
        public fileprivate(set) var resolution: PictureSize?
        /// Frames a second, if there is a resolution.
        public fileprivate(set) var frameRate: UInt8 = 0

        /// Returns the kilobits a second of temporal layer `index` including those below it.
        public func targetKilobits(temporalLayer index: Int) -> UInt32 {
            precondition(index >= 0 && index < temporalLayerCount, "no such temporal layer")
            return kilobits[index]
        }
    }

    /// Stream that carries this packet, 0 to 3.
    public let streamIndex: UInt8
    /// Number of streams, 1 to 4; 0 if nothing is sent.
    public let streamCount: Int
    /// Number of active spatial layers in all streams.
    public private(set) var layerCount = 0
    private var layers: InlineArray<16, Layer>

    /// Returns an active spatial layer, ordered by stream and then upwards.
    public subscript(index: Int) -> Layer {
        precondition(index >= 0 && index < layerCount, "no such layer")
        return layers[index]
    }

    public init?(_ element: Span<UInt8>) {
        layers = InlineArray(repeating: Layer(stream: 0, spatialID: 0))
        guard element.count >= 1 else { return nil }
        // A single zero byte means that all layers are off.
        guard element.count > 1 || element[0] != 0 else {
            streamIndex = 0
            streamCount = 0
            return
        }
        var reader = ByteReader(element)
        let head = reader.byte()
        streamIndex = head >> 6
        streamCount = Int(head >> 4 & 0x03) + 1
        readActiveLayers(&reader, shared: head & 0x0f)
        readTemporalLayers(&reader)
        // Sizes and frame rates are present for all layers or for none.
        if reader.position < element.count {
            for index in 0..<layerCount {
                let width = UInt32(reader.u16()) + 1
                let height = UInt32(reader.u16()) + 1
                layers[index].resolution = PictureSize(width: width, height: height)
                layers[index].frameRate = reader.byte()
            }
        }
        guard !reader.isExhausted else { return nil }
    }

    /// Reads the masks of active layers: one for all streams, or if that is zero one per stream,
    /// two per byte.
    private mutating func readActiveLayers(_ reader: inout ByteReader, shared: UInt8) {
        var masks: UInt8 = 0
        for stream in 0..<streamCount {
            if shared == 0, stream % 2 == 0 { masks = reader.byte() }
            let own = stream % 2 == 0 ? masks >> 4 : masks & 0x0f
            let mask = shared == 0 ? own : shared
            for spatialID in 0..<4 where mask >> UInt8(spatialID) & 1 != 0 {
                layers[layerCount] = Layer(stream: UInt8(stream), spatialID: UInt8(spatialID))
                layerCount += 1
            }
        }
    }

    /// Reads the number of temporal layers of each spatial layer, four per byte, then all bitrates.
    private mutating func readTemporalLayers(_ reader: inout ByteReader) {
        var counts: UInt8 = 0
        for index in 0..<layerCount {
            if index % 4 == 0 { counts = reader.byte() }
            layers[index].temporalLayerCount = Int(counts >> UInt8(6 - 2 * (index % 4)) & 3) + 1
        }
        for index in 0..<layerCount {
            for temporal in 0..<layers[index].temporalLayerCount {
                layers[index].kilobits[temporal] = reader.leb128()
            }
        }
    }
}

extension ByteReader {
    /// Reads a number in groups of seven bits, lowest first, saturated (AV1 specification §4.10.5).
    mutating func leb128() -> UInt32 {
        var value: UInt64 = 0
        for group in 0..<8 {
            let byte = byte()
            value |= UInt64(byte & 0x7f) << UInt64(7 * group)
            if byte & 0x80 == 0 { break }
        }
        return UInt32(clamping: value)
    }
}
