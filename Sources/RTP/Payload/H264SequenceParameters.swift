/// Partial parser of a sequence parameter set (ITU-T H.264 §7.3.2.1.1).
enum H264SequenceParameters {
    /// Returns the size after cropping, or `nil` for truncated or out-of-bounds values.
    ///
    /// `body` starts after the unit header.
    static func resolution(_ body: Span<UInt8>) -> PictureSize? {
        var reader = BitReader(body, skipsEmulationPrevention: true)
        let profile = reader.bits(8)
        _ = reader.bits(16)  // constraint flags and level
        _ = reader.exponentialGolomb()  // seq_parameter_set_id
        let chroma = highProfiles.contains(profile) ? readChroma(&reader) : 1
        _ = reader.exponentialGolomb()  // log2_max_frame_num_minus4
        guard skipPictureOrder(&reader) else { return nil }
        _ = reader.exponentialGolomb()  // max_num_ref_frames
        _ = reader.bit()  // gaps_in_frame_num_value_allowed_flag
        let widthUnits = reader.exponentialGolomb()
        let heightUnits = reader.exponentialGolomb()
        let isFramesOnly = reader.bit()
        if !isFramesOnly { _ = reader.bit() }  // mb_adaptive_frame_field_flag
        _ = reader.bit()  // direct_8x8_inference_flag

        let fields = isFramesOnly ? 1 : 2
        guard widthUnits < maximumUnits, heightUnits < maximumUnits else { return nil }
        var width = 16 * (Int(widthUnits) + 1)
        var height = 16 * (Int(heightUnits) + 1) * fields
        if reader.bit() {
            // Cropping is in chroma samples (table 6-1).
            let horizontal = chroma == 1 || chroma == 2 ? 2 : 1
            let vertical = (chroma == 1 ? 2 : 1) * fields
            width -= horizontal * Int(reader.exponentialGolomb())
            width -= horizontal * Int(reader.exponentialGolomb())
            height -= vertical * Int(reader.exponentialGolomb())
            height -= vertical * Int(reader.exponentialGolomb())
        }
        guard !reader.isExhausted, width > 0, height > 0 else { return nil }
        return PictureSize(width: UInt32(width), height: UInt32(height))
    }

    /// Reads the fields of the high profiles and returns ChromaArrayType.
    ///
    /// Its value is chroma_format_idc, or 0 if color planes are coded separately.
    private static func readChroma(_ reader: inout BitReader) -> UInt32 {
        let format = reader.exponentialGolomb()
        let isSeparate = format == 3 && reader.bit()
        _ = reader.exponentialGolomb()  // bit_depth_luma_minus8
        _ = reader.exponentialGolomb()  // bit_depth_chroma_minus8
        _ = reader.bit()  // qpprime_y_zero_transform_bypass_flag
        if reader.bit() {
            for list in 0..<(format == 3 ? 12 : 8) where reader.bit() {
                skipScalingList(&reader, count: list < 6 ? 16 : 64)
            }
        }
        return isSeparate ? 0 : format
    }

    /// Skips a scaling list, which ends at the first scale of zero (ITU-T H.264 §7.3.2.1.1.1).
    private static func skipScalingList(_ reader: inout BitReader, count: Int) {
        var scale: Int32 = 8
        for _ in 0..<count where scale != 0 {
            scale = (scale &+ reader.signedExponentialGolomb()) & 0xff
        }
    }

    private static func skipPictureOrder(_ reader: inout BitReader) -> Bool {
        switch reader.exponentialGolomb() {
        case 0:
            _ = reader.exponentialGolomb()  // log2_max_pic_order_cnt_lsb_minus4
        case 1:
            _ = reader.bit()  // delta_pic_order_always_zero_flag
            _ = reader.exponentialGolomb()  // offset_for_non_ref_pic
            _ = reader.exponentialGolomb()  // offset_for_top_to_bottom_field
            let count = reader.exponentialGolomb()
            guard count <= 255 else { return false }
            for _ in 0..<count { _ = reader.exponentialGolomb() }
        case 2: break
        default: return false
        }
        return true
    }

    /// Profiles with a chroma format (§7.3.2.1.1).
    private static let highProfiles: [UInt32] = [
        100, 110, 122, 244, 44, 83, 86, 118, 128, 138, 139, 134, 135,
    ]
    /// Maximum size in macroblocks: 65,536 pixels exceed every level.
    private static var maximumUnits: UInt32 { 4096 }
}
