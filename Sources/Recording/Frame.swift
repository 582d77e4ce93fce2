import RTP
package import SFU
package import WorkerInterface

/// How a file has to be made for the frames in it.
package struct FrameFormat: Hashable, Sendable {
    package var codec: Codec
    /// In pixels; 0 for audio.
    package var width: Int
    package var height: Int
    /// What a decoder needs before the first frame, as Matroska's CodecPrivate is made of:
    /// `OpusHead`, avcC, AV1's sequence header; empty for VP8 and VP9.
    package var configuration: [UInt8]

    package init(codec: Codec, width: Int, height: Int, configuration: [UInt8]) {
        self.codec = codec
        self.width = width
        self.height = height
        self.configuration = configuration
    }

    /// Two channels at 48 kHz, as WebRTC has it; 312 samples are libopus's look-ahead
    /// (RFC 7845 §5.1, RFC 7587 §4.1).
    package static let opus = Self(
        codec: .opus,
        width: 0,
        height: 0,
        configuration: Array("OpusHead".utf8) + [1, 2, 0x38, 0x01, 0x80, 0xbb, 0, 0, 0, 0, 0]
    )

    /// Whether a file that was begun with this can go on with `other`.
    ///
    /// A keyframe of VP8, VP9 or AV1 says all that its decoder needs; of H.264 the file does.
    package func canGoOn(with other: Self) -> Bool {
        codec == other.codec && (codec != .h264 || configuration == other.configuration)
    }
}

/// One frame, whole, as it goes into a file.
package struct Frame: Sendable {
    package var bytes: [UInt8]
    package var isKeyframe: Bool
    /// Of a keyframe, and of all audio.
    package var format: FrameFormat?
    /// The first of its packets, without the payload.
    package var packet: TapPacket

    package init(bytes: [UInt8], isKeyframe: Bool, format: FrameFormat?, packet: TapPacket) {
        self.bytes = bytes
        self.isKeyframe = isKeyframe
        self.format = format
        self.packet = packet
        self.packet.payload = []
    }
}
