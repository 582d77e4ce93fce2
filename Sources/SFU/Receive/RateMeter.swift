import RTP

/// Meter of one encoding's bitrate and frame rate, over windows of about a second.
struct RateMeter: BitwiseCopyable {
    private var windowStart: Instant?
    private var bytes: UInt64 = 0
    private var frames = 0
    private(set) var bitrate = 0
    private(set) var frameRate = 0.0
    private(set) var lastArrival: Instant?

    /// Counts one packet; padding alone does not make an encoding active.
    mutating func receive(bytes count: Int, endsFrame: Bool, isMedia: Bool, at now: Instant) {
        if windowStart == nil { windowStart = now }
        bytes &+= UInt64(count)
        guard isMedia else { return }
        if endsFrame { frames &+= 1 }
        lastArrival = now
    }

    /// Closes the window if it is long enough; returns whether it did.
    @discardableResult
    mutating func measure(at now: Instant) -> Bool {
        guard let windowStart else { return false }
        let elapsed = now.nanoseconds(since: windowStart)
        guard elapsed >= 900_000_000 else { return false }
        // Capped above any link rate, so that sums of rates cannot overflow.
        bitrate = Int(saturating: min(Double(bytes) * 8_000_000_000 / Double(elapsed), 1e12))
        frameRate = Double(frames) * 1_000_000_000 / Double(elapsed)
        bytes = 0
        frames = 0
        self.windowStart = now
        return true
    }

    /// Returns whether media arrived within `milliseconds` before `now`.
    func isActive(within milliseconds: Int64, at now: Instant) -> Bool {
        guard let lastArrival else { return false }
        return now.milliseconds(since: lastArrival) < milliseconds
    }
}
