/// One packet's loudness (RFC 6464 §3).
struct AudioLevel: BitwiseCopyable, Hashable {
    /// Below the loudest that can be, in -dBov: 0 is the loudest, 127 silence.
    var level: UInt8
    /// Whether it is speech, where the sender says so.
    var voice: Bool?

    init(level: UInt8, voice: Bool? = nil) {
        self.level = min(level, Self.silence)
        self.voice = voice
    }

    /// Reads the one byte of the header extension's element.
    ///
    /// Pass `hasVoice` false where the session agreed on `vad=off` (RFC 6464 §4).
    init(element: UInt8, hasVoice: Bool = true) {
        level = element & 0x7f
        voice = hasVoice ? element & 0x80 != 0 : nil
    }

    /// What a packet without any sound has.
    static let silence: UInt8 = 127
}
