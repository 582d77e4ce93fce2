import RTP

/// Holds lines of one cause to one a second, and counts those held back.
struct LogLimiter {
    struct Key: Hashable {
        var level: LogLevel
        var message: String
        var cause: String
    }

    private struct Window {
        var end: Instant
        var held: UInt64
    }

    private var windows: [Key: Window] = [:]

    /// Returns how many were held back since the last line of this cause, or `nil` to hold this
    /// one back too.
    mutating func admit(_ key: Key, at now: Instant) -> UInt64? {
        if let window = windows[key], now < window.end {
            windows[key]?.held += 1
            return nil
        }
        let held = windows[key]?.held ?? 0
        if windows[key] == nil, windows.count >= Self.capacity { makeRoom(at: now) }
        windows[key] = Window(end: now.advanced(milliseconds: 1_000), held: 0)
        return held
    }

    /// Forgets causes that are silent; all of them rather than growing without bound.
    private mutating func makeRoom(at now: Instant) {
        windows = windows.filter { now < $0.value.end }
        if windows.count >= Self.capacity { windows.removeAll(keepingCapacity: true) }
    }

    /// Causes told apart at one time.
    static let capacity = 256
}
