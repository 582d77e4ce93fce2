/// Fluctuation of loud levels: a voice rises and falls from packet to packet, a fan does not.
struct LevelFluctuation: BitwiseCopyable {
    /// Mean difference between consecutive levels, in dB.
    private var mean: Float = 0
    private var count = 0
    private var last: UInt8?

    var isOfSpeech: Bool { count >= Self.leastCount && Self.ofSpeech ~= mean }

    /// Processes one packet's level, and starts over after recent silence.
    mutating func receive(_ level: UInt8, isLoud: Bool, wasSilent: Bool) {
        if wasSilent { (mean, count, last) = (0, 0, nil) }
        guard isLoud else {
            last = nil
            return
        }
        if let last {
            let step = min(abs(Float(level) - Float(last)), Self.mostOfOne)
            count = min(count + 1, Self.mostCount)
            mean += (step - mean) / Float(count)
        }
        last = level
    }

    /// Mean difference of speech, in dB; noise in packets of 20 ms has at most half of it.
    private static let ofSpeech = (2 as Float)...6
    /// Cap on a single difference, so that one jump does not count as fluctuation.
    private static let mostOfOne: Float = 12
    private static let leastCount = 3
    private static let mostCount = 12
}
