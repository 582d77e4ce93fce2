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
