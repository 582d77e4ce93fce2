import ControlPlane
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
    /// Windows with lines held back that nothing has told of yet.
    private var holding = 0

    var isHolding: Bool { holding > 0 }

    /// Returns how many were held back since the last line of this cause, or `nil` to hold this
    /// one back too.
    mutating func admit(_ key: Key, at now: Instant) -> UInt64? {
        var held: UInt64 = 0
        if let window = windows[key] {
            if now < window.end {
                if window.held == 0 { holding += 1 }
                windows[key]?.held += 1
                return nil
            }
            held = window.held
            if held > 0 { holding -= 1 }
        } else if windows.count >= Self.capacity {
            makeRoom(at: now)
        }
        windows[key] = Window(end: now.advanced(milliseconds: 1_000), held: 0)
        return held
    }

    /// Causes whose second is over without another line, with how many were held back.
    mutating func takeHeld(at now: Instant) -> [(Key, UInt64)] {
        let over = windows.filter { $0.value.held > 0 && $0.value.end <= now }
        for key in over.keys { windows[key] = nil }
        holding -= over.count
        return over.map { ($0.key, $0.value.held) }
    }

    /// Forgets causes that are silent; all of them rather than growing without bound.
    private mutating func makeRoom(at now: Instant) {
        windows = windows.filter { now < $0.value.end || $0.value.held > 0 }
        guard windows.count >= Self.capacity else { return }
        windows.removeAll(keepingCapacity: true)
        holding = 0
    }

    /// Causes told apart at one time.
    static let capacity = 256
}
