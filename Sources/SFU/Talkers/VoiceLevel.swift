/// How loud somebody speaks, learned while talking.
///
/// What is much quieter than one's own voice is somebody else's, out of a loudspeaker or from the
/// next desk.
struct VoiceLevel: BitwiseCopyable {
    /// In dB below the loudest that can be.
    private var level = Self.usual
    /// How long something was nearly loud enough, twice the time that it was not taken off.
    private var faint = 0

    /// The quietest that can be this voice, in dB below the loudest.
    var threshold: UInt8 { UInt8(level + Self.range) }

    /// Takes what was heard while talking.
    mutating func receive(_ heard: UInt8, milliseconds: Int) {
        guard heard <= threshold else { return }
        faint = 0
        level += (Float(heard) - level) * Float(milliseconds) / Self.learnMilliseconds
        level = min(max(level, Self.loudest), Self.quietest)
    }

    /// Takes what was heard while not talking.
    ///
    /// Who shouted may whisper, so what was learned is forgotten. And what is a little too quiet
    /// but goes on like speech is a quiet voice.
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
    /// Between the mean of loud packets and the quietest of them.
    private static let range: Float = 11
    /// In dB.
    private static let faintRange: Float = 4
    private static let faintMilliseconds = 1_500
    private static let learnMilliseconds: Float = 1_300
    private static let forgetMilliseconds: Float = 60_000
}
