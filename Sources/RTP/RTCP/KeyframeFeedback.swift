/// Picture Loss Indication: asks a sender for a keyframe (RFC 4585 §6.3.1).
public struct PictureLossIndication: Equatable, Sendable {
    public var sender: SSRC
    public var media: SSRC

    /// Encoded size, in bytes.
    public static var encodedSize: Int { 12 }

    public init(sender: SSRC, media: SSRC) {
        self.sender = sender
        self.media = media
    }

    public init(_ block: RTCPBlock) throws(RTCPError) {
        try block.require(
            type: RTCPType.payloadFeedback,
            format: RTCPFormat.pictureLoss,
            length: Self.encodedSize
        )
        sender = SSRC(rawValue: block.bytes.u32(at: 4))
        media = SSRC(rawValue: block.bytes.u32(at: 8))
    }

    /// Appends the packet; `output` must have `encodedSize` bytes free.
    public func encode(into output: inout OutputSpan<UInt8>) {
        output.append(0x80 | RTCPFormat.pictureLoss)
        output.append(RTCPType.payloadFeedback)
        output.append(bigEndian: UInt16(Self.encodedSize / 4 - 1))
        output.append(bigEndian: sender.rawValue)
        output.append(bigEndian: media.rawValue)
    }
}

/// Full Intra Request: asks senders for a keyframe (RFC 5104 §4.3.1).
public struct FullIntraRequest: ~Escapable {
    /// Request to one sender; the same `number` again repeats the same request.
    public struct Entry: Equatable, Sendable {
        public var media: SSRC
        public var number: UInt8

        public init(media: SSRC, number: UInt8) {
            self.media = media
            self.number = number
        }
    }

    private let bytes: Span<UInt8>
    public let sender: SSRC
    public let count: Int

    @_lifetime(copy block)
    public init(_ block: RTCPBlock) throws(RTCPError) {
        try block.require(
            type: RTCPType.payloadFeedback,
            format: RTCPFormat.fullIntraRequest,
            length: 12
        )
        bytes = block.bytes
        sender = SSRC(rawValue: bytes.u32(at: 4))
        count = (bytes.count - 12) / 8
    }

    public subscript(index: Int) -> Entry {
        precondition(index >= 0 && index < count, "no such entry")
        let offset = 12 + 8 * index
        return Entry(media: SSRC(rawValue: bytes.u32(at: offset)), number: bytes[offset + 4])
    }

    /// Encoded size with one entry, in bytes.
    public static var encodedSize: Int { 20 }

    /// Appends a packet with one entry; `output` must have `encodedSize` bytes free.
    public static func encode(
        sender: SSRC,
        entry: Entry,
        into output: inout OutputSpan<UInt8>
    ) {
        output.append(0x80 | RTCPFormat.fullIntraRequest)
        output.append(RTCPType.payloadFeedback)
        output.append(bigEndian: UInt16(encodedSize / 4 - 1))
        output.append(bigEndian: sender.rawValue)
        // The media source in the header is unused (RFC 5104 §4.3.1.2).
        output.append(bigEndian: UInt32(0))
        output.append(bigEndian: entry.media.rawValue)
        output.append(bigEndian: UInt32(entry.number) << 24)
    }
}
