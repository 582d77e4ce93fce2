/// Raises the estimate for another layer where no padding can be sent, so that only media can show
/// what the path carries.
///
/// Padding travels on an RTX stream, which clients need not have. A trial that fails fills the
/// path's queue for a second, so each failure doubles the time until the next one.
struct Trials {
    /// Nanoseconds between trials and after a drop, and how often failures double it.
    private static let interval: Int64 = 5_000_000_000
    private static let mostDoublings = 5
    /// Nanoseconds after which a trial has gone well: a slot whose layer has failed before takes
    /// up to 64 s to use what has been tried.
    private static let length: Int64 = 70_000_000_000
    /// Nanoseconds between two looks while a trial is due and conditions forbid it.
    private static let lookInterval: Int64 = 200_000_000
    /// Rate that is tried, relative to what the next layer needs.
    private static let margin = 1.02

    private var due: Int64?
    private var looked: Int64 = .min / 2
    /// Time of the last trial, if nothing has dropped the estimate since.
    private var last: Int64?
    private var failures = 0

    /// Returns the time at which a trial may next be due.
    func deadline(_ situation: Prober.Situation) -> Int64? {
        guard let due, situation.next > situation.estimate else { return nil }
        return max(due, looked &+ Self.lookInterval)
    }

    /// Returns the rate to try, in bits a second, if a trial is due.
    mutating func take(_ situation: Prober.Situation, at now: Int64) -> Double? {
        looked = now
        guard let due else {
            self.due = now &+ Self.interval
            return nil
        }
        let isQueueEmpty =
            situation.empties || situation.waiting < BandwidthEstimator.shortWait
        guard now >= due, !situation.isCongested, isQueueEmpty,
            situation.next > situation.estimate, situation.estimate < situation.maximum
        else { return nil }
        self.due = now &+ Self.interval
        last = now
        return min(Self.margin * situation.next, situation.maximum)
    }

    /// Notes a look at a time at which nothing may be tried.
    mutating func refuse(at now: Int64) { looked = now }

    /// Notes a drop of the estimate, which a trial before it may have caused.
    mutating func noteDrop(at now: Int64) {
        if let tried = last {
            let isFailure = now &- tried < Self.length
            failures = isFailure ? min(failures &+ 1, Self.mostDoublings) : 0
            last = nil
        }
        due = now &+ Self.interval << failures
    }
}
