import RTP

/// Delay before a child that has died is started again.
///
/// After a crash it is none. A child that crashes again and again, though it gets ready each time,
/// is delayed a little, as every start costs processing time. One that does not get ready is
/// delayed longer each time: usually something outside of it is missing, such as a port.
struct RestartPolicy {
    /// Times of the last deaths after readiness, the oldest first.
    private var crashes: [Instant] = []
    /// Consecutive deaths before readiness.
    private var failures = 0

    /// Notes a death; returns the milliseconds to wait.
    mutating func delay(afterReady wasReady: Bool, at now: Instant) -> Int64 {
        guard wasReady else {
            failures = min(failures + 1, Self.mostDoublings)
            return min(Self.firstMilliseconds << Int64(failures), Self.longestMilliseconds)
        }
        failures = 0
        crashes.removeAll { $0.advanced(milliseconds: Self.windowMilliseconds) <= now }
        crashes.append(now)
        if crashes.count > Self.mostDoublings { crashes.removeFirst() }
        guard crashes.count > 1 else { return 0 }
        return min(
            Self.firstMilliseconds << Int64(crashes.count - 2),
            Self.longestAfterReadyMilliseconds
        )
    }

    static let firstMilliseconds: Int64 = 25
    /// Longest delay of a child that got ready.
    static let longestAfterReadyMilliseconds: Int64 = 200
    /// Longest delay of a child that did not.
    static let longestMilliseconds: Int64 = 5_000
    /// Time after which a crash no longer counts.
    static let windowMilliseconds: Int64 = 1_000
    /// Limit of the delays' growth.
    private static let mostDoublings = 16
}
