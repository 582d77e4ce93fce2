/// Estimate of a speaker's usual level, learned while talking.
///
/// Much quieter sound is taken for somebody else, from a loudspeaker or the next desk.
struct VoiceLevel: BitwiseCopyable {
    /// Usual level, in -dBov.
    private var level = Self.usual
    /// Milliseconds of sound slightly below the threshold, reduced by twice the time without it.
    private var faint = 0

    /// Quietest level of this voice, in -dBov.
    var threshold: UInt8 { UInt8(level + Self.range) }

    /// Learns from a packet while talking.
    mutating func receive(_ heard: UInt8, milliseconds: Int) {
        guard heard <= threshold else { return }
        faint = 0
        level += (Float(heard) - level) * Float(milliseconds) / Self.learnMilliseconds
        level = min(max(level, Self.loudest), Self.quietest)
    }

    /// Adapts to a packet while not talking.
    ///
    /// The estimate decays, because a speaker who shouted may whisper next. Lasting sound slightly
    /// below the threshold is taken for a quiet voice, and lowers it.
    mutating func receiveQuiet(_ heard: UInt8, milliseconds: Int) {
        faint +=
            Float(heard) <= Float(threshold) + Self.faintRange ? milliseconds : -2 * milliseconds
        faint = max(faint, 0)
        if faint >= Self.faintMilliseconds {
            faint = 0
            level = min(level + Self.faintRange, Self.quietest)
        }
        level += (Self.usual - level) * Float(milliseconds) / Self.forgetMilliseconds
    }

    private static let usual: Float = 31.5
    private static let loudest: Float = 15
    private static let quietest: Float = 38
    /// Range from the mean of loud packets to the quietest of them, in dB.
    private static let range: Float = 11
    /// Width of the band below the threshold that counts as faint speech, in dB.
    private static let faintRange: Float = 4
    private static let faintMilliseconds = 1_500
    private static let learnMilliseconds: Float = 1_300
    private static let forgetMilliseconds: Float = 60_000
}
