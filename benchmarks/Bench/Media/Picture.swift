/// Deterministic test pictures with changing content.
///
/// Camera: a soft drifting background with grain, and blocks that move over it. Screen: scrolling
/// lines that resemble text.
enum Picture {
    /// Function that gives the luma of one pixel in frame `frame`.
    typealias Luma = @Sendable (_ x: Int, _ y: Int, _ frame: Int) -> UInt8

    /// Returns the camera picture of that size; its content is the same at every size.
    static func camera(width: Int, height: Int) -> Luma {
        let scale = max(1, 1_280 / width)
        return { x, y, frame in
            let (across, down) = (x * scale, y * scale)
            let face = (across - 640 - swing(frame, 97) / 2, down - 360 - swing(frame, 61) / 4)
            let distance = face.0 * face.0 + 2 * face.1 * face.1
            let grain = Int(noise(UInt64(across >> 1), UInt64(down >> 1), UInt64(frame)) & 7)
            let base = 70 + (across + 2 * frame) / 16 % 64 + (down + frame) / 8 % 48
            // The patterned wall makes keyframes several times as large as other frames.
            let wall = Int(noise(UInt64(across / 6), UInt64(down / 6), 0) % 64)
            let head = distance < 40_000 ? 60 - distance / 1_000 : 0
            return UInt8(clamping: base + head + grain + (head == 0 ? wall : 0))
        }
    }

    static func screen(width: Int, height: Int) -> Luma {
        { x, y, frame in
            let scrolled = y + 6 * frame
            let line = scrolled / 20
            // A letter has 10 by 14 pixels and a line has 20; most positions are blank.
            guard scrolled % 20 < 14, noise(UInt64(x / 10), UInt64(line), 1) & 7 < 2 else {
                return 235
            }
            let stroke = noise(
                UInt64(x / 10 % 64 << 8 | (x % 10) / 2),
                UInt64(line % 40 << 8 | (scrolled % 20) / 2),
                2
            )
            return stroke & 1 == 0 ? 32 : 235
        }
    }

    /// Oscillates between -200 and 200 in `period` frames.
    private static func swing(_ frame: Int, _ period: Int) -> Int {
        let phase = frame % period * 800 / period
        return phase < 400 ? phase - 200 : 600 - phase
    }

    /// Returns a hash of the position.
    private static func noise(_ x: UInt64, _ y: UInt64, _ z: UInt64) -> UInt64 {
        var value = x &* 0x9e37_79b9_7f4a_7c15 ^ y &* 0xbf58_476d_1ce4_e5b9
        value ^= z &* 0x94d0_49bb_1331_11eb
        value ^= value >> 29
        value = value &* 0xbf58_476d_1ce4_e5b9
        return value >> 33
    }
}
