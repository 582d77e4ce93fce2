/// What the first bytes of an Opus packet say (RFC 6716 §3).
struct OpusPacket: BitwiseCopyable {
    /// Of sound, in milliseconds, rounded up: 2.5 ms are 3.
    let milliseconds: Int
    /// Whether the sender has nothing to send but that it still is there.
    let isSilence: Bool

    /// Returns `nil` for what is no Opus packet.
    init?(_ payload: Span<UInt8>) {
        guard payload.count >= 1 else { return nil }
        let frames: Int
        switch payload[0] & 3 {
        case 0: frames = 1
        case 1, 2: frames = 2
        default:
            guard payload.count >= 2 else { return nil }
            frames = Int(payload[1] & 0x3f)
        }
        let tenths = Self.frameTenths(configuration: payload[0] >> 3) * frames
        // A packet has at most 120 ms (RFC 6716 §3.2.5, R5).
        guard 1...1_200 ~= tenths else { return nil }
        milliseconds = (tenths + 9) / 10
        isSilence = payload.count <= 2
    }

    /// Tenths of a millisecond in a frame (RFC 6716 §3.1, table 2).
    private static func frameTenths(configuration: UInt8) -> Int {
        switch configuration {
        case 0..<12: [100, 200, 400, 600][Int(configuration & 3)]
        case 12..<16: configuration & 1 == 0 ? 100 : 200
        default: 25 << Int(configuration & 3)
        }
    }
}
