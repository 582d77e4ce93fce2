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
