/// The first byte of an AV1 payload (RTP Payload Format for AV1 §4.4).
public struct AV1AggregationHeader: Equatable, Sendable {
    /// Z: the first element goes on with a unit of the packet before.
    public let continuesUnit: Bool
    /// Y: the last element goes on in the next packet.
    public let isContinued: Bool
    /// W: the number of elements, or 0 where each one has its length before it.
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

    /// Whether a key frame starts here; a packet cannot start a sequence and go on with a unit.
    public var isKeyframeStart: Bool { startsSequence && !continuesUnit }
}
