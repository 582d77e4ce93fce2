import RTP

/// Payload types and ids in our offers, as in Chromium's.
///
/// An adapter that answers uses the offered ones instead and returns them in its replies.
enum OfferParameters {
    static let audioPayloadType: UInt8 = 111
    static let videoPayloadType: UInt8 = 96
    static let rtxPayloadType: UInt8 = 97

    /// Ids of header extensions (RFC 8285), for audio and video.
    static let extensions: [(id: UInt8, kind: ExtensionKind)] = [
        (1, .audioLevel), (2, .absoluteSendTime), (3, .transportSequenceNumber), (4, .mid),
        (10, .rid), (11, .repairedRID),
    ]

    /// RTP timestamp units a second.
    static let audioClock = 48_000
    static let videoClock = 90_000
    /// Nanoseconds between two packets of Opus.
    static let audioInterval: Int64 = 20_000_000
    /// Most bytes of RTP payload; a packet with header and tag then has at most 1,200.
    static let videoPayload = 1_140
}

/// Audio or video.
enum Medium: Int, CaseIterable, Sendable { case audio, video }
