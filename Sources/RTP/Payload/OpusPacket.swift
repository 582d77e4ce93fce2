/// Duration and DTX state of an Opus packet, from its TOC byte and length (RFC 6716 §3.1).
public struct OpusPacket: Equatable, Sendable {
    /// Duration in samples of 48 kHz; at most 5,760.
    public let samples: Int
    /// Whether it is too short for audio: a sign of discontinuous transmission (RFC 7587 §3.1.3).
    public let isDTX: Bool

    /// Parses a packet; returns `nil` if it has no bytes, no frames or more than 120 ms (RFC 6716
    /// §3.2.5).
    public init?(_ payload: Span<UInt8>) {
        guard payload.count >= 1 else { return nil }
        let frames: Int
        switch payload[0] & 0x03 {
        case 0: frames = 1
        case 1, 2: frames = 2
        default:
            guard payload.count >= 2 else { return nil }
            frames = Int(payload[1] & 0x3f)
        }
        samples = frames * Self.frameSamples(configuration: payload[0] >> 3)
        guard samples > 0, samples <= 5760 else { return nil }
        isDTX = payload.count <= 2
    }

    /// Returns the samples per frame of one of the 32 configurations (RFC 6716 table 2).
    private static func frameSamples(configuration: UInt8) -> Int {
        switch configuration {
        case 0...11: configuration % 4 == 3 ? 2880 : 480 << Int(configuration % 4)
        case 12...15: 480 << Int(configuration % 2)
        default: 120 << Int(configuration % 4)
        }
    }
}
