/// Link capacity estimate: mean and spread of the rate acknowledged during overuse
/// (draft-ietf-rmcat-gcc-02 §5.5).
///
/// The rate grows additively near it and faster while no capacity is known.
struct LinkCapacity {
    private static let weight = 0.05

    /// Mean in kbit/s; 0 while unknown.
    private var mean = 0.0
    private var deviation = 0.4

    var estimate: Double? { mean > 0 ? mean * 1000 : nil }
    var upper: Double { mean > 0 ? (mean + 3 * spread) * 1000 : .infinity }
    var lower: Double { mean > 0 ? max(0, mean - 3 * spread) * 1000 : 0 }

    private var spread: Double { (deviation * mean).squareRoot() }

    /// Adds the rate acknowledged during an overuse, in bits a second.
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
