/// Audio or video.
package enum MediaKind: UInt8, Hashable, Sendable, CaseIterable, BitwiseCopyable {
    case audio, video
}

/// A codec that sfud forwards.
package enum Codec: UInt8, Hashable, Sendable, CaseIterable, BitwiseCopyable {
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

/// Some of the codecs.
package struct CodecSet: Hashable, Sendable {
    private var bits: UInt8 = 0

    package init(_ codecs: some Sequence<Codec>) {
        for codec in codecs { bits |= 1 << codec.rawValue }
    }

    package func contains(_ codec: Codec) -> Bool { bits & 1 << codec.rawValue != 0 }
}

/// A codec with what must agree for one side to decode what the other encodes.
///
/// `profile` is VP9's profile-id, AV1's profile, or the H.264 profile's rank
/// (0 constrained baseline, 1 baseline, 2 main, 3 constrained high, 4 high); H.264 is always
/// packetization-mode 1. It is 0 for the others.
package struct MediaFormat: Hashable, Sendable, BitwiseCopyable {
    package var codec: Codec
    package var profile: UInt8

    package init(codec: Codec, profile: UInt8 = 0) {
        self.codec = codec
        self.profile = profile
    }
}

/// A format's payload types on one m-line.
package struct FormatMapping: Hashable, Sendable, BitwiseCopyable {
    package var format: MediaFormat
    package var payloadType: UInt8
    /// The retransmission format that repairs it (RFC 4588), where negotiated.
    package var rtxPayloadType: UInt8?
    /// `a=rtcp-fb` lines that both sides have for it.
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

/// RTCP feedback that was agreed on (RFC 4585 §4.2, RFC 5104 §7).
package struct FeedbackKinds: OptionSet, Hashable, Sendable, BitwiseCopyable {
    package let rawValue: UInt8
    package init(rawValue: UInt8) { self.rawValue = rawValue }

    package static let nack = Self(rawValue: 1)
    package static let pictureLoss = Self(rawValue: 2)
    package static let fullIntraRequest = Self(rawValue: 4)
    package static let transportWide = Self(rawValue: 8)
    package static let remb = Self(rawValue: 16)
}
