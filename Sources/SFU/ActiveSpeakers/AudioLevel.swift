/// Audio level of one packet (RFC 6464 §3).
struct AudioLevel: BitwiseCopyable, Hashable {
    /// Level in -dBov: 0 is the loudest, 127 silence.
    var level: UInt8
    /// Whether it is speech; `nil` if the sender does not say.
    var voice: Bool?

    init(level: UInt8, voice: Bool? = nil) {
        self.level = min(level, Self.silence)
        self.voice = voice
    }

    /// Parses the one byte of the header extension element.
    ///
    /// Pass false for `hasVoice` if the session has negotiated `vad=off` (RFC 6464 §4).
    init(element: UInt8, hasVoice: Bool = true) {
        level = element & 0x7f
        voice = hasVoice ? element & 0x80 != 0 : nil
    }

    /// Level of a packet without any sound.
    static let silence: UInt8 = 127
}
