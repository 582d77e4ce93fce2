import RTP

/// The numbers that our offers have, as Chromium's do.
///
/// An adapter that answers takes what it was offered instead, and says so in its replies.
enum Wire {
    static let audioPayloadType: UInt8 = 111
    static let videoPayloadType: UInt8 = 96
    static let rtxPayloadType: UInt8 = 97

    /// Ids of header extensions (RFC 8285), audio's and video's alike.
    static let extensions: [(id: UInt8, kind: ExtensionKind)] = [
        (1, .audioLevel), (2, .absoluteSendTime), (3, .transportSequenceNumber), (4, .mid),
        (10, .rid), (11, .repairedRID),
    ]

    /// RTP timestamp units a second.
    static let audioClock = 48_000
    static let videoClock = 90_000
    /// Nanoseconds between two packets of Opus.
    static let audioInterval: Int64 = 20_000_000
    /// Bytes of RTP payload, so that no packet is longer than 1,200 with header and tag.
    static let videoPayload = 1_140
}

/// Sound or picture.
enum Medium: Int, CaseIterable, Sendable { case audio, video }
