/// The loudest of late: what is much quieter than it is its echo, not a syllable.
struct RecentPeak: BitwiseCopyable {
    /// In dB below the loudest that can be.
    private var level = Self.none

    /// The quietest that can belong to the same speech, in dB below the loudest.
    var threshold: UInt8 { UInt8(min(level + Self.range, Self.none)) }

    /// The quietest that a syllable has in its middle, in dB below the loudest.
    var fullThreshold: UInt8 { UInt8(min(level + Self.syllable, Self.none)) }

    mutating func receive(_ heard: UInt8, milliseconds: Int) {
        level = min(level + Self.fall * Float(milliseconds), Float(heard), Self.none)
    }

    private static let none: Float = 127
    private static let range: Float = 16
    private static let syllable: Float = 9
    /// In dB a millisecond: a second after a cough, speech of any loudness is heard again.
    private static let fall: Float = 0.02
}
