import RTP
import SFU

/// Assembly of VP8 and VP9 frames from RTP packets.
enum VPXFrame {
    /// Concatenates the payloads behind the descriptors (RFC 7741 §4); returns `nil` if one is
    /// invalid.
    static func vp8(_ parts: [TapPacket]) -> [UInt8]? {
        var frame: [UInt8] = []
        for (index, part) in parts.enumerated() {
            guard let descriptor = VP8Descriptor(part.payload.span),
                descriptor.length < part.payload.count
            else { return nil }
            if index == 0, !descriptor.startsFrame { return nil }
            frame += part.payload[descriptor.length...]
        }
        return frame
    }

    /// Concatenates the payloads behind the descriptors (RFC 9628 §4); returns `nil` if one is
    /// invalid.
    ///
    /// The spatial layers of a picture are combined into a superframe.
    static func vp9(_ parts: [TapPacket]) -> [UInt8]? {
        var picture: [UInt8] = []
        var sizes: [Int] = []
        for part in parts {
            guard let descriptor = VP9Descriptor(part.payload.span),
                descriptor.length < part.payload.count
            else { return nil }
            if descriptor.startsFrame { sizes.append(0) }
            guard let last = sizes.indices.last else { return nil }
            sizes[last] += part.payload.count - descriptor.length
            picture += part.payload[descriptor.length...]
        }
        guard sizes.count > 1 else { return picture }
        guard sizes.count <= 8, sizes.allSatisfy({ $0 <= Int(UInt32.max) }) else { return nil }
        return picture + superframeIndex(sizes)
    }

    /// Returns a superframe index with sizes of four bytes, low byte first.
    ///
    /// See the VP9 bitstream specification, annex B.
    private static func superframeIndex(_ sizes: [Int]) -> [UInt8] {
        let marker = 0xc0 | 3 << 3 | UInt8(sizes.count - 1)
        var index = [marker]
        for size in sizes {
            for shift in stride(from: 0, to: 32, by: 8) {
                index.append(UInt8(truncatingIfNeeded: size >> shift))
            }
        }
        return index + [marker]
    }

    /// Returns the resolution in a keyframe's header; `nil` for any other frame.
    static func vp9Resolution(_ frame: Span<UInt8>) -> PictureSize? {
        VP9FrameHeader.resolution(frame)
    }
}
