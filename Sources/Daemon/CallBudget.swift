import RTP

/// Token bucket that limits the calls of one IPC connection.
///
/// It allows a number of calls a second, and a burst of one second's worth. Its state is the time
/// at which all calls taken so far will be paid for.
struct CallBudget {
    /// Cost of a call, in nanoseconds.
    private let cost: Int64
    private var paid = Instant(nanoseconds: 0)

    /// Largest lead of `paid` over the clock, in nanoseconds.
    private static let burst: Int64 = 1_000_000_000
    /// Budget that must be regained before reading resumes, in nanoseconds, to avoid tiny reads.
    private static let rest: Int64 = 20_000_000

    /// `callsPerSecond` is at least 1.
    init(callsPerSecond: Int) {
        precondition(callsPerSecond > 0, "a connection may make calls")
        cost = max(1, 1_000_000_000 / Int64(callsPerSecond))
    }

    /// Charges calls that have been read.
    ///
    /// - Returns: the time at which reading may resume; `nil` if calls are left.
    mutating func take(_ calls: Int, at now: Instant) -> Instant? {
        let start = max(paid.nanoseconds, now.nanoseconds)
        paid = Instant(nanoseconds: start &+ Int64(calls) &* cost)
        let ahead = paid.nanoseconds - now.nanoseconds
        guard ahead > Self.burst else { return nil }
        return Instant(nanoseconds: now.nanoseconds + ahead - Self.burst + Self.rest)
    }
}
