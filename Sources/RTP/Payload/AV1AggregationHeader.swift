/// AV1 aggregation header, the first byte of a payload (RTP Payload Format for AV1 §4.4).
public struct AV1AggregationHeader: Equatable, Sendable {
    /// Z: the first OBU element continues an OBU of the previous packet.
    public let continuesUnit: Bool
    /// Y: the last OBU element continues in the next packet.
    public let isContinued: Bool
    /// W: the number of OBU elements, or 0 if each is preceded by its length.
    public let elementCount: UInt8
    /// N: the packet is the first of a coded video sequence.
    public let startsSequence: Bool

    public init?(_ payload: Span<UInt8>) {
        guard payload.count >= 1 else { return nil }
        continuesUnit = payload[0] & 0x80 != 0
        isContinued = payload[0] & 0x40 != 0
        elementCount = payload[0] >> 4 & 0x03
        startsSequence = payload[0] & 0x08 != 0
    }

    /// Whether a keyframe starts here; a packet cannot both start a sequence and continue an OBU.
    public var isKeyframeStart: Bool { startsSequence && !continuesUnit }
}
