import RTP

/// Limit of how often a publication's packets select the layers of all its subscribers anew.
///
/// A publisher whose encodings and layers begin one after the other needs a dozen within a moment.
struct RefreshLimit: BitwiseCopyable {
    /// Selections at once.
    static let burst: Int64 = 16
    /// Time, in ms, after which another one is allowed.
    static let intervalMilliseconds: Int64 = 100

    /// Time until which the selections made so far last; a burst is used up if it is that far off.
    private var until = Instant(nanoseconds: .min / 2)
    /// Whether one was refused since the last review.
    private var isPending = false

    /// Whether layers may be selected now; otherwise the next review has to do it.
    mutating func mayRefresh(at now: Instant) -> Bool {
        let next = max(until, now).advanced(milliseconds: Self.intervalMilliseconds)
        guard next.milliseconds(since: now) <= Self.burst * Self.intervalMilliseconds else {
            isPending = true
            return false
        }
        until = next
        return true
    }

    /// Returns whether one was refused since the last call.
    mutating func takePending() -> Bool {
        defer { isPending = false }
        return isPending
    }
}
