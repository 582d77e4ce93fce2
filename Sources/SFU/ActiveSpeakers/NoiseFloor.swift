/// Estimate of a microphone's noise floor by minimum statistics: the quietest level of the last
/// seconds.
///
/// Speech has gaps, so its minimum over some seconds is the background noise. A fan has no gaps.
struct NoiseFloor: BitwiseCopyable {
    /// Level of the noise, in -dBov.
    private(set) var level: UInt8 = Self.unknown
    /// Quietest level of each span, including the current one.
    private var quietest = [12 of UInt8](repeating: Self.unknown)
    private var present = 0
    private var milliseconds = 0

    mutating func receive(_ level: UInt8, milliseconds length: Int) {
        quietest[present] = max(quietest[present], level)
        milliseconds &+= length
        guard milliseconds >= Self.spanMilliseconds else { return }
        milliseconds = 0
        measure()
        present = (present + 1) % quietest.count
        quietest[present] = level
    }

    /// Updates the floor: it falls at once, and rises after noise has lasted through all spans.
    private mutating func measure() {
        var least: UInt8 = 0
        for index in quietest.indices { least = max(least, quietest[index]) }
        level = min(max(least, Self.loudest), Self.quietest)
    }

    /// Length of each of the twelve spans: 4.8 s in all, longer than people speak without a gap.
    private static let spanMilliseconds = 400
    /// Floor assumed until the first seconds are over.
    private static let unknown: UInt8 = 60
    /// Lowest floor; gated microphones send silence, which says nothing about the room.
    private static let quietest: UInt8 = 75
    /// Highest floor, which leaves a range for speech above it.
    private static let loudest: UInt8 = 30
}
