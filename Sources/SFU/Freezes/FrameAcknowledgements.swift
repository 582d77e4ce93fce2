import RTP

/// Viewer's transport-wide feedback on the last packets of frames.
///
/// Arrival times are on the viewer's clock, so only their differences count.
struct FrameAcknowledgements: BitwiseCopyable {
    /// Longest gap between two arrivals, in nanoseconds; a longer one is a change of the clock.
    private static let longest: Int64 = 60_000_000_000

    /// Send time of the newest frame that arrived.
    private(set) var lastSent: Instant?
    private var lastArrived: Int64 = 0
    /// Time at which a frame left that is not acknowledged yet.
    private(set) var waitingSince: Instant?
    /// Mean interval of arrivals in nanoseconds, 0 while unknown.
    private(set) var interval: Int64 = 0

    /// Forgets all arrivals, as the viewer's clock is another one; the mean stays.
    mutating func forgetArrivals() {
        let mean = interval
        self = Self()
        interval = mean
    }

    /// Notes that a frame has left at `time`.
    mutating func noteLeft(at time: Instant) {
        guard waitingSince == nil, let lastSent, time > lastSent else { return }
        waitingSince = time
    }

    /// Notes a frame that arrived; returns the time since the one before, in nanoseconds, if it is
    /// a newer one.
    mutating func note(sent: Instant, arrived: Int64) -> Int64? {
        defer {
            if sent > lastSent ?? Instant(nanoseconds: .min) {
                lastSent = sent
                lastArrived = arrived
                if let waiting = waitingSince, waiting <= sent { waitingSince = nil }
            }
        }
        guard let lastSent, sent > lastSent else { return nil }
        let gap = max(0, arrived &- lastArrived)
        return gap < Self.longest ? gap : nil
    }

    /// Takes an ordinary gap into the mean.
    mutating func learn(_ gap: Int64) {
        interval = interval == 0 ? gap : interval &+ (gap &- interval) / 16
    }
}
