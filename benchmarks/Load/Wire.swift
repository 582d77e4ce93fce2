/// The numbers that the publisher and the viewers offer, as Chromium does.
enum Wire {
    static let audioPayloadType: UInt8 = 111
    static let videoPayloadType: UInt8 = 96
    static let rtxPayloadType: UInt8 = 97

    static let audioLevelExtension: UInt8 = 1
    static let sendTimeExtension: UInt8 = 2
    static let transportSequenceExtension: UInt8 = 3
    static let midExtension: UInt8 = 4

    /// RTP timestamp units a second.
    static let audioClock = 48_000
    static let videoClock = 90_000

    static let audioInterval: Int64 = 20_000_000
    /// Bytes of an Opus packet.
    static let audioPayload = 80
    /// Bytes of RTP payload, so that no packet is longer than 1,200 with header and tag.
    static let videoPayload = 1_140
}

/// Which of the two streams.
enum Medium: Int, CaseIterable, Sendable { case audio, video }
