import RTP
import SFU

/// VP8 and VP9 frames out of their packets.
enum VPXFrame {
    /// RFC 7741 §4: what lies behind the descriptors, in order; `nil` where one cannot be read.
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

    /// RFC 9628 §4: the same; where a picture has several spatial layers, a superframe of them.
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

    /// VP9 bitstream specification, annex B: sizes of four bytes, low byte first.
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

    /// The size in a key frame's header; `nil` for anything else.
    static func vp9Resolution(_ frame: Span<UInt8>) -> PictureSize? {
        VP9FrameHeader.resolution(frame)
    }
}
