/// Loudness history of the last 640 ms, in steps of 10 ms.
struct RecentLoudness: BitwiseCopyable {
    static let stepMilliseconds = 10

    /// Steps that were loud; the lowest bit is the newest.
    private var loud: UInt64 = 0
    /// Steps above a slightly lower threshold, as an initial consonant is quieter than its vowel.
    private var audible: UInt64 = 0

    /// Steps as loud as the middle of a syllable, which the echo of a click is not.
    private var full: UInt64 = 0

    var isSilent: Bool { loud == 0 }

    mutating func append(isLoud: Bool, isAudible: Bool, isFull: Bool, steps: Int) {
        pass(milliseconds: steps * Self.stepMilliseconds)
        let newest: UInt64 = 1 << UInt64(steps) &- 1
        if isLoud { loud |= newest }
        if isAudible { audible |= newest }
        if isFull { full |= newest }
    }

    /// Appends silence.
    mutating func pass(milliseconds: Int) {
        // A shift beyond the width clears all bits.
        loud <<= milliseconds / Self.stepMilliseconds
        audible <<= milliseconds / Self.stepMilliseconds
        full <<= milliseconds / Self.stepMilliseconds
    }

    /// Returns the loud milliseconds within the last `window` milliseconds.
    func milliseconds(within window: Int) -> Int {
        let mask: UInt64 = 1 << UInt64(window / Self.stepMilliseconds) &- 1
        return (loud & mask).nonzeroBitCount * Self.stepMilliseconds
    }

    /// Whether the last 300 ms contain a syllable: 80 ms in a row nearly as loud as the peak.
    var hasSyllable: Bool {
        let pairs = full & full >> 1 & Self.lately
        let fours = pairs & pairs >> 2
        return fours & fours >> 4 != 0
    }

    /// Time since the onset of the current speech, in milliseconds.
    var millisecondsSinceOnset: Int {
        var onset = 0
        var quiet = 0
        for step in 0..<64 {
            if audible >> UInt64(step) & 1 != 0 {
                onset = step + 1
                quiet = 0
            } else {
                quiet += 1
                if quiet > Self.gapSteps { break }
            }
        }
        return onset * Self.stepMilliseconds
    }

    /// Longest gap between syllables of one word, 100 ms.
    private static let gapSteps = 10
    private static let lately: UInt64 = 1 << 30 &- 1
}
