import ControlPlane
import RTP

/// Rate limiter that admits one line a second per cause and counts the suppressed ones.
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
    /// Number of windows with suppressed lines that have not been reported.
    private var holding = 0

    var isHolding: Bool { holding > 0 }

    /// Returns the number of lines suppressed since the last one of this cause; `nil` suppresses
    /// this one too.
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

    /// Returns the causes whose second is over without another line, with their suppressed counts.
    mutating func takeHeld(at now: Instant) -> [(Key, UInt64)] {
        let over = windows.filter { $0.value.held > 0 && $0.value.end <= now }
        for key in over.keys { windows[key] = nil }
        holding -= over.count
        return over.map { ($0.key, $0.value.held) }
    }

    /// Removes silent causes, or all causes if the table would still be full.
    private mutating func makeRoom(at now: Instant) {
        windows = windows.filter { now < $0.value.end || $0.value.held > 0 }
        guard windows.count >= Self.capacity else { return }
        windows.removeAll(keepingCapacity: true)
        holding = 0
    }

    /// Largest number of causes tracked at a time.
    static let capacity = 256
}
