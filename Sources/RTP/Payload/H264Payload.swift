/// Iterator over the NAL units in one H.264 payload (RFC 6184 §5.2): single, STAP-A or FU-A.
///
/// Browsers send these three; other packetizations yield no units.
public struct H264Payload: ~Escapable {
    /// NAL unit, or the part of one in this packet.
    public struct Unit: ~Escapable {
        public let type: UInt8
        /// Whether the unit's first byte is in this packet.
        public let isStart: Bool
        /// Bytes after the one-byte unit header.
        public let body: Span<UInt8>

        @_lifetime(copy body)
        init(type: UInt8, isStart: Bool, body: Span<UInt8>) {
            self.type = type
            self.isStart = isStart
            self.body = body
        }
    }

    private let payload: Span<UInt8>
    private var position = 0

    @_lifetime(copy payload)
    public init(_ payload: Span<UInt8>) { self.payload = payload }

    /// Returns the next unit; returns `nil` at the end or if an aggregated one does not fit.
    @_lifetime(copy self)
    public mutating func next() -> Unit? {
        guard position < payload.count else { return nil }
        switch payload[0] & 0x1f {
        case 1...23:
            position = payload.count
            return Unit(
                type: payload[0] & 0x1f,
                isStart: true,
                body: payload.extracting(droppingFirst: 1)
            )
        case Self.aggregate:
            return nextAggregated()
        case Self.fragment:
            position = payload.count
            guard payload.count >= 2 else { return nil }
            return Unit(
                type: payload[1] & 0x1f,
                isStart: payload[1] & 0x80 != 0,
                body: payload.extracting(droppingFirst: 2)
            )
        default:
            position = payload.count
            return nil
        }
    }

    @_lifetime(copy self)
    private mutating func nextAggregated() -> Unit? {
        if position == 0 { position = 1 }
        let start = position + 2
        guard start < payload.count else {
            position = payload.count
            return nil
        }
        let end = start + Int(payload.u16(at: position))
        guard end > start, end <= payload.count else {
            position = payload.count
            return nil
        }
        position = end
        return Unit(
            type: payload[start] & 0x1f,
            isStart: true,
            body: payload.extracting(start + 1..<end)
        )
    }

    private static var aggregate: UInt8 { 24 }
    private static var fragment: UInt8 { 28 }
    private static var instantRefresh: UInt8 { 5 }
    private static var sequenceParameters: UInt8 { 7 }
}

extension H264Payload {
    /// Returns whether `payload` starts a keyframe: it has a sequence parameter set or an IDR
    /// slice.
    public static func isKeyframeStart(_ payload: Span<UInt8>) -> Bool {
        var units = H264Payload(payload)
        while let unit = units.next() {
            guard unit.isStart else { continue }
            if unit.type == sequenceParameters || unit.type == instantRefresh { return true }
        }
        return false
    }

    /// Returns the size in a sequence parameter set in `payload`, if it is complete and plausible.
    public static func resolution(_ payload: Span<UInt8>) -> PictureSize? {
        var units = H264Payload(payload)
        while let unit = units.next() {
            guard unit.isStart, unit.type == sequenceParameters else { continue }
            return H264SequenceParameters.resolution(unit.body)
        }
        return nil
    }
}
