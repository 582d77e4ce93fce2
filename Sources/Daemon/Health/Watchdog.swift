import RTP

/// Watchdog of the workers' threads.
///
/// It wakes each thread's mailbox once a second; a thread has answered when it has drained it. It
/// counts unanswered wake-ups, not seconds: after a stall of the whole process, only one more is
/// counted, whatever the clock says.
struct Watchdog {
    private var lastLooks: [UInt64]
    /// Consecutive unanswered wake-ups of each thread.
    private var unanswered: [Int]
    private(set) var deadline: Instant

    /// `drainCount` is the number of times that each thread has drained its mailbox so far.
    init(drainCount: [UInt64], at now: Instant) {
        lastLooks = drainCount
        unanswered = drainCount.map { _ in 0 }
        deadline = now.advanced(milliseconds: Self.intervalMilliseconds)
    }

    /// Counts the answers if a check is due; returns whether to wake all threads again.
    mutating func isDue(drainCount: @autoclosure () -> [UInt64], at now: Instant) -> Bool {
        guard deadline <= now else { return false }
        deadline = now.advanced(milliseconds: Self.intervalMilliseconds)
        let drainCount = drainCount()
        for index in drainCount.indices {
            unanswered[index] = drainCount[index] == lastLooks[index] ? unanswered[index] + 1 : 0
        }
        lastLooks = drainCount
        return true
    }

    /// Whether all threads have answered recently; only then is the service manager's watchdog fed.
    var allRespond: Bool { unanswered.allSatisfy { $0 <= Self.patience } }

    /// Index of a thread that is considered lost.
    var lost: Int? { unanswered.firstIndex { $0 > Self.limit } }

    private static let intervalMilliseconds: Int64 = 1_000
    /// Unanswered wake-ups that a busy thread may have.
    private static let patience = 2
    /// Unanswered wake-ups after which a thread is considered lost.
    ///
    /// After a stall a round can take seconds, because of the traffic that arrived meanwhile.
    static let limit = 10
}
