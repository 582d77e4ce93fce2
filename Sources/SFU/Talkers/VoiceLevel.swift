/// How loud somebody speaks, learned while talking.
///
/// What is much quieter than one's own voice is somebody else's, out of a loudspeaker or from the
/// next desk.
struct VoiceLevel: BitwiseCopyable {
    /// In dB below the loudest that can be.
    private var level = Self.usual

    /// The quietest that can be this voice, in dB below the loudest.
    var threshold: UInt8 { UInt8(level + Self.range) }

    /// Takes what was heard while talking.
    mutating func receive(_ heard: UInt8, milliseconds: Int) {
        level += (Float(heard) - level) * Float(milliseconds) / Self.learnMilliseconds
        level = min(max(level, Self.loudest), Self.quietest)
    }

    /// Lets time pass without talking: who shouted may whisper.
    mutating func forget(milliseconds: Int) {
        level += (Self.usual - level) * Float(milliseconds) / Self.forgetMilliseconds
    }

    private static let usual: Float = 32
    private static let loudest: Float = 15
    private static let quietest: Float = 36
    /// Between the mean of loud packets and the quietest of them.
    private static let range: Float = 15
    private static let learnMilliseconds: Float = 1_300
    private static let forgetMilliseconds: Float = 60_000
}
