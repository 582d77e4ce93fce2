/// VP8 payload descriptor (RFC 7741 §4.2).
public struct VP8Descriptor: Equatable, Sendable {
    /// Length of the descriptor, after which the VP8 payload starts.
    public let length: Int
    public let isNonReference: Bool
    /// S: the packet starts a partition.
    public let startOfPartition: Bool
    public let partitionIndex: UInt8
    /// Picture id of seven or fifteen bits.
    public private(set) var pictureID: UInt16?
    public private(set) var hasLongPictureID = false
    /// Offset of the picture id in the payload, or 0.
    public private(set) var pictureIDOffset = 0
    public private(set) var tl0PictureIndex: UInt8?
    /// Offset of TL0PICIDX in the payload, or 0.
    public private(set) var tl0PictureIndexOffset = 0
    public private(set) var temporalID: UInt8?
    /// Y: the frame depends on the base layer only.
    public private(set) var layerSync = false
    public private(set) var keyIndex: UInt8?

    public init?(_ payload: Span<UInt8>) {
        guard payload.count >= 1 else { return nil }
        isNonReference = payload[0] & 0x20 != 0
        startOfPartition = payload[0] & 0x10 != 0
        partitionIndex = payload[0] & 0x07
        guard payload[0] & 0x80 != 0 else {
            length = 1
            return
        }

        guard payload.count >= 2 else { return nil }
        let flags = payload[1]
        var position = 2
        if flags & 0x80 != 0 {
            guard position < payload.count else { return nil }
            pictureIDOffset = position
            hasLongPictureID = payload[position] & 0x80 != 0
            let size = hasLongPictureID ? 2 : 1
            guard position + size <= payload.count else { return nil }
            pictureID =
                hasLongPictureID
                ? payload.u16(at: position) & 0x7fff : UInt16(payload[position])
            position += size
        }
        if flags & 0x40 != 0 {
            guard position < payload.count else { return nil }
            tl0PictureIndexOffset = position
            tl0PictureIndex = payload[position]
            position += 1
        }
        if flags & 0x30 != 0 {
            guard position < payload.count else { return nil }
            if flags & 0x20 != 0 {
                temporalID = payload[position] >> 6
                layerSync = payload[position] & 0x20 != 0
            }
            if flags & 0x10 != 0 { keyIndex = payload[position] & 0x1f }
            position += 1
        }
        length = position
    }

    /// Returns whether `payload`, which this describes, starts a keyframe (RFC 7741 §4.3).
    public func isKeyframeStart(_ payload: Span<UInt8>) -> Bool {
        startsFrame && length < payload.count && payload[length] & 1 == 0
    }

    /// Whether the payload holds the first byte of a frame.
    public var startsFrame: Bool { startOfPartition && partitionIndex == 0 }

    /// Returns the size in the header of a keyframe that starts in `payload` (RFC 6386 §9.1).
    public func resolution(_ payload: Span<UInt8>) -> PictureSize? {
        guard isKeyframeStart(payload), payload.count - length >= 10 else { return nil }
        let frame = payload.extracting(length..<payload.count)
        guard frame.u24(at: 3) == 0x9d_012a else { return nil }
        // Little-endian, with two bits of scaling at the top.
        let width = UInt32(frame[6]) | UInt32(frame[7] & 0x3f) << 8
        let height = UInt32(frame[8]) | UInt32(frame[9] & 0x3f) << 8
        return PictureSize(width: width, height: height)
    }
}
