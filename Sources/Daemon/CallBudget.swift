import RTP

/// The calls that one connection may make: so many a second, and a second's worth of them at once.
///
/// A token bucket, kept as the time when all that was taken will have been paid for.
struct CallBudget {
    /// Nanoseconds that a call costs.
    private let cost: Int64
    private var paid = Instant(nanoseconds: 0)

    /// How far ahead of the time a connection may be.
    private static let burst: Int64 = 1_000_000_000
    /// Reading begins anew when so much has come back, so that it is worth the while.
    private static let rest: Int64 = 20_000_000

    /// `callsPerSecond` is at least 1.
    init(callsPerSecond: Int) {
        precondition(callsPerSecond > 0, "a connection may make calls")
        cost = max(1, 1_000_000_000 / Int64(callsPerSecond))
    }

    /// Takes calls that have been read.
    ///
    /// - Returns: until when no more may be read; `nil` where there are calls left.
    mutating func take(_ calls: Int, at now: Instant) -> Instant? {
        let start = max(paid.nanoseconds, now.nanoseconds)
        paid = Instant(nanoseconds: start &+ Int64(calls) &* cost)
        let ahead = paid.nanoseconds - now.nanoseconds
        guard ahead > Self.burst else { return nil }
        return Instant(nanoseconds: now.nanoseconds + ahead - Self.burst + Self.rest)
    }
}
