/// What a microphone hears when nobody speaks: the least of the last seconds, as minimum
/// statistics have it.
///
/// Speech has gaps, so its least in some seconds is the room behind it; a fan has none.
struct NoiseFloor: BitwiseCopyable {
    /// The loudness of noise, in dB below the loudest that can be.
    private(set) var level: UInt8 = Self.unknown
    /// The least of each span, the present one included.
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

    /// Quiet counts at once, noise when it has lasted through all spans.
    private mutating func measure() {
        var least: UInt8 = 0
        for index in quietest.indices { least = max(least, quietest[index]) }
        level = min(max(least, Self.loudest), Self.quietest)
    }

    /// Of twelve: 4.8 s, longer than people speak without a gap.
    private static let spanMilliseconds = 400
    /// Until the first seconds are over, a room of this kind is supposed.
    private static let unknown: UInt8 = 60
    /// Gated microphones send silence, which says nothing about the room.
    private static let quietest: UInt8 = 75
    /// Above this, speech would have no room left.
    private static let loudest: UInt8 = 30
}
