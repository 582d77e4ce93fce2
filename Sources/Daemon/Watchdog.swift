import RTP

/// Sees to it that every worker's thread still goes round.
///
/// Each thread is asked once a second, by a ring at its mailbox, and has answered when it has
/// looked there. Questions are counted, not seconds: when the whole process has stood still, the
/// first look after it is one question more, whatever the clock says.
struct Watchdog {
    private var lastLooks: [UInt64]
    /// Questions in a row that a thread has not answered.
    private var unanswered: [Int]
    private(set) var deadline: Instant

    /// `looks` is how often each thread has looked into its mailbox so far.
    init(looks: [UInt64], at now: Instant) {
        lastLooks = looks
        unanswered = looks.map { _ in 0 }
        deadline = now.advanced(milliseconds: Self.intervalMilliseconds)
    }

    /// Counts the answers, once one is due; `true`: all threads are to be asked anew.
    mutating func isDue(looks: @autoclosure () -> [UInt64], at now: Instant) -> Bool {
        guard deadline <= now else { return false }
        deadline = now.advanced(milliseconds: Self.intervalMilliseconds)
        let looks = looks()
        for index in looks.indices {
            unanswered[index] = looks[index] == lastLooks[index] ? unanswered[index] + 1 : 0
        }
        lastLooks = looks
        return true
    }

    /// Whether all have answered lately; only then is a service manager told that all is well.
    var isWell: Bool { unanswered.allSatisfy { $0 <= Self.patience } }

    /// A thread that is taken for lost.
    var lost: Int? { unanswered.firstIndex { $0 > Self.limit } }

    private static let intervalMilliseconds: Int64 = 1_000
    /// Questions that are asked while a thread is in the middle of something.
    private static let patience = 2
    /// After a stall a round can take seconds, with all that has come meanwhile.
    static let limit = 10
}
