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

/// Partial parser of an AV1 sequence header (AV1 specification §5.5).
public enum AV1SequenceHeader {
    /// Returns the maximum size of the frames that follow; `body` starts after the OBU header.
    public static func resolution(_ body: Span<UInt8>) -> PictureSize? {
        var reader = BitReader(body)
        _ = reader.bits(3)  // seq_profile
        _ = reader.bit()  // still_picture
        if reader.bit() {  // reduced_still_picture_header
            _ = reader.bits(5)
        } else {
            skipOperatingPoints(&reader)
        }
        let widthBits = Int(reader.bits(4)) + 1
        let heightBits = Int(reader.bits(4)) + 1
        let width = reader.bits(widthBits) + 1
        let height = reader.bits(heightBits) + 1
        return reader.isExhausted ? nil : PictureSize(width: width, height: height)
    }

    private static func skipOperatingPoints(_ reader: inout BitReader) {
        var delayBits: Int?
        if reader.bit() {  // timing_info_present_flag
            _ = reader.bits(32)  // num_units_in_display_tick
            _ = reader.bits(32)  // time_scale
            if reader.bit() { _ = reader.exponentialGolomb() }
            if reader.bit() {  // decoder_model_info_present_flag
                delayBits = Int(reader.bits(5)) + 1
                _ = reader.bits(32)
                _ = reader.bits(10)
            }
        }
        let hasDisplayDelay = reader.bit()
        let count = Int(reader.bits(5)) + 1
        for _ in 0..<count {
            _ = reader.bits(12)  // operating_point_idc
            if reader.bits(5) > 7 { _ = reader.bit() }  // seq_level_idx, seq_tier
            if let delayBits, reader.bit() {
                _ = reader.bits(delayBits)
                _ = reader.bits(delayBits)
                _ = reader.bit()
            }
            if hasDisplayDelay, reader.bit() { _ = reader.bits(4) }
        }
    }
}
