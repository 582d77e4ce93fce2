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
