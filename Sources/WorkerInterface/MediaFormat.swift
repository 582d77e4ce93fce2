/// Audio or video.
package enum MediaKind: UInt8, Hashable, Sendable, CaseIterable, BitwiseCopyable, Codable {
    case audio, video
}

/// Codec that sfud forwards.
package enum Codec: UInt8, Hashable, Sendable, CaseIterable, BitwiseCopyable, Codable {
    case opus, red, vp8, vp9, h264, av1

    package var kind: MediaKind {
        switch self {
        case .opus, .red: .audio
        case .vp8, .vp9, .h264, .av1: .video
        }
    }

    /// RTP clock rate, in hertz.
    package var clockRate: Int {
        switch kind {
        case .audio: 48_000
        case .video: 90_000
        }
    }
}

/// Set of codecs.
package struct CodecSet: Hashable, Sendable {
    private var bits: UInt8 = 0

    package init(_ codecs: some Sequence<Codec>) {
        for codec in codecs { bits |= 1 << codec.rawValue }
    }

    package func contains(_ codec: Codec) -> Bool { bits & 1 << codec.rawValue != 0 }
}

/// Coded as its bits.
extension CodecSet: Codable {
    package init(from decoder: any Decoder) throws {
        bits = try decoder.singleValueContainer().decode(UInt8.self)
    }

    package func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(bits)
    }
}

/// Codec with the parameters that both sides must agree on.
///
/// `profile` is VP9's profile-id, AV1's profile, or the H.264 profile's rank (0 constrained
/// baseline, 1 baseline, 2 main, 3 constrained high, 4 high); H.264 is always packetization-mode 1.
/// It is 0 for the others.
package struct MediaFormat: Hashable, Sendable, BitwiseCopyable, Codable {
    package var codec: Codec
    package var profile: UInt8

    package init(codec: Codec, profile: UInt8 = 0) {
        self.codec = codec
        self.profile = profile
    }
}

/// Payload types of a format on one m-line.
package struct FormatMapping: Hashable, Sendable, BitwiseCopyable, Codable {
    package var format: MediaFormat
    package var payloadType: UInt8
    /// Payload type of the RTX format that repairs it (RFC 4588); `nil` if not negotiated.
    package var rtxPayloadType: UInt8?
    /// RTCP feedback that both sides offer for it (`a=rtcp-fb`).
    package var feedback: FeedbackKinds

    package init(
        format: MediaFormat,
        payloadType: UInt8,
        rtxPayloadType: UInt8? = nil,
        feedback: FeedbackKinds = []
    ) {
        self.format = format
        self.payloadType = payloadType
        self.rtxPayloadType = rtxPayloadType
        self.feedback = feedback
    }
}

/// Negotiated RTCP feedback (RFC 4585 §4.2, RFC 5104 §7).
package struct FeedbackKinds: OptionSet, Hashable, Sendable, BitwiseCopyable, Codable {
    package let rawValue: UInt8
    package init(rawValue: UInt8) { self.rawValue = rawValue }

    package static let nack = Self(rawValue: 1)
    package static let pictureLoss = Self(rawValue: 2)
    package static let fullIntraRequest = Self(rawValue: 4)
    package static let transportWide = Self(rawValue: 8)
    package static let remb = Self(rawValue: 16)
}

/// The source of a stream's media: a device or a screen.
package enum MediaSource: String, Hashable, Sendable, CaseIterable, Codable {
    case camera, microphone, screen

    /// Returns the default source of an m-line whose source was not given.
    package static func defaultSource(for kind: MediaKind) -> Self {
        switch kind {
        case .audio: .microphone
        case .video: .camera
        }
    }

    package func fits(_ kind: MediaKind) -> Bool {
        switch self {
        case .camera: kind == .video
        case .microphone: kind == .audio
        case .screen: true
        }
    }
}
