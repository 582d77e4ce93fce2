import RTP
package import SFU
package import WorkerInterface

/// Track parameters that the container file needs.
package struct FrameFormat: Hashable, Sendable {
    package var codec: Codec
    /// Width in pixels; 0 for audio.
    package var width: Int
    package var height: Int
    /// Decoder configuration for Matroska's CodecPrivate: `OpusHead`, avcC, or AV1's sequence
    /// header; empty for VP8 and VP9.
    package var configuration: [UInt8]

    package init(codec: Codec, width: Int, height: Int, configuration: [UInt8]) {
        self.codec = codec
        self.width = width
        self.height = height
        self.configuration = configuration
    }

    /// WebRTC's Opus: two channels at 48 kHz.
    ///
    /// The pre-skip of 312 samples is libopus's look-ahead (RFC 7845 §5.1, RFC 7587 §4.1).
    package static let opus = Self(
        codec: .opus,
        width: 0,
        height: 0,
        configuration: Array("OpusHead".utf8) + [1, 2, 0x38, 0x01, 0x80, 0xbb, 0, 0, 0, 0, 0]
    )

    /// Whether a file begun with this format can continue with `other`.
    ///
    /// A keyframe of VP8, VP9 or AV1 contains all that its decoder needs; H.264's parameter sets
    /// are in the file's header.
    package func canContinue(with other: Self) -> Bool {
        codec == other.codec && (codec != .h264 || configuration == other.configuration)
    }
}

/// Complete frame as it is written into a file.
package struct Frame: Sendable {
    package var bytes: [UInt8]
    package var isKeyframe: Bool
    /// Format; `nil` unless this is a keyframe or audio.
    package var format: FrameFormat?
    /// First packet of the frame, without its payload.
    package var packet: TapPacket

    package init(bytes: [UInt8], isKeyframe: Bool, format: FrameFormat?, packet: TapPacket) {
        self.bytes = bytes
        self.isKeyframe = isKeyframe
        self.format = format
        self.packet = packet
        self.packet.payload = []
    }
}
