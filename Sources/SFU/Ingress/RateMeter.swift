internal import RTP

/// Bits and frames a second of one encoding, over windows of about a second.
struct RateMeter: BitwiseCopyable {
    private var windowStart: Instant?
    private var bytes: UInt64 = 0
    private var frames = 0
    private(set) var bitrate = 0
    private(set) var frameRate = 0.0
    private(set) var lastArrival: Instant?

    mutating func receive(bytes count: Int, endsFrame: Bool, at now: Instant) {
        if windowStart == nil { windowStart = now }
        bytes &+= UInt64(count)
        if endsFrame { frames += 1 }
        lastArrival = now
    }

    /// Closes the window if it is long enough.
    mutating func measure(at now: Instant) {
        guard let windowStart else { return }
        let elapsed = now.nanoseconds(since: windowStart)
        guard elapsed >= 900_000_000 else { return }
        bitrate = Int(Double(bytes) * 8_000_000_000 / Double(elapsed))
        frameRate = Double(frames) * 1_000_000_000 / Double(elapsed)
        bytes = 0
        frames = 0
        self.windowStart = now
    }

    /// Whether anything came within `milliseconds` before `now`.
    func isActive(within milliseconds: Int64, at now: Instant) -> Bool {
        guard let lastArrival else { return false }
        return now.milliseconds(since: lastArrival) < milliseconds
    }
}
