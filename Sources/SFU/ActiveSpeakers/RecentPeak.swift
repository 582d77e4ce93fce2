/// Decaying peak level.
///
/// Sound much quieter than the peak is taken for its echo, not for a syllable.
struct RecentPeak: BitwiseCopyable {
    /// Peak level in -dBov.
    private var level = Self.none

    /// Quietest level of the same speech, in -dBov.
    var threshold: UInt8 { UInt8(min(level + Self.range, Self.none)) }

    /// Quietest level of a syllable's middle, in -dBov.
    var fullThreshold: UInt8 { UInt8(min(level + Self.syllable, Self.none)) }

    mutating func receive(_ heard: UInt8, milliseconds: Int) {
        level = min(level + Self.fall * Float(milliseconds), Float(heard), Self.none)
    }

    private static let none: Float = 127
    private static let range: Float = 16
    private static let syllable: Float = 9
    /// Decay in dB per millisecond: a second after a cough, speech of any loudness is recognized
    /// again.
    private static let fall: Float = 0.02
}
