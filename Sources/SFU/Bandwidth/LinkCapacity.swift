/// What the path carried when it was last used beyond that: mean and spread, in bits a second
/// (draft-ietf-rmcat-gcc-02 §5.5).
///
/// Near it the estimate feels its way up; far from it, it may run.
struct LinkCapacity {
    private static let weight = 0.05

    /// In kbit/s; 0 while nothing is known.
    private var mean = 0.0
    private var deviation = 0.4

    var estimate: Double? { mean > 0 ? mean * 1000 : nil }
    var upper: Double { mean > 0 ? (mean + 3 * spread) * 1000 : .infinity }
    var lower: Double { mean > 0 ? max(0, mean - 3 * spread) * 1000 : 0 }

    private var spread: Double { (deviation * mean).squareRoot() }

    /// Takes what was acknowledged while the path was overused.
    mutating func noteOveruse(_ bitsPerSecond: Double) {
        let sample = bitsPerSecond / 1000
        mean = mean > 0 ? (1 - Self.weight) * mean + Self.weight * sample : sample
        let error = mean - sample
        let relative = error * error / max(mean, 1)
        deviation = (1 - Self.weight) * deviation + Self.weight * relative
        deviation = min(max(deviation, 0.4), 2.5)
    }

    mutating func reset() { self = LinkCapacity() }
}
