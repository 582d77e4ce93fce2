/// Detector of application-limited sending, relative to the estimate.
///
/// A budget fills at three quarters of the estimate and is spent by sending. If it stays nearly
/// full for half a second, the acknowledged rate does not show the path's limit.
struct OfferedLoad {
    private static let share = 0.75
    /// Span of the budget in nanoseconds.
    private static let span = 500_000_000.0
    private static let enters = 0.8
    private static let leaves = 0.5

    /// Bytes left, from minus to plus the amount that fills the span.
    private var budget = 0.0
    private var last: Int64?
    /// Fill rate in bytes a nanosecond.
    private var rate = 0.0
    private(set) var isLimited = false
    /// Time at which application-limited sending last ended.
    private(set) var leftLimit: Int64 = .min / 2

    /// Sets the estimate, in bits a second.
    mutating func setEstimate(_ bitsPerSecond: Double) {
        rate = bitsPerSecond * Self.share / 8e9
        let most = rate * Self.span
        budget = min(max(budget, -most), most)
    }

    /// Notes bytes that left; 0 only accounts for elapsed time.
    mutating func note(bytes: Int, at now: Int64) {
        let most = rate * Self.span
        let filled = budget + rate * Double(max(0, now &- (last ?? now)))
        budget = max(min(filled, most) - Double(bytes), -most)
        last = now
        if isLimited {
            if budget < Self.leaves * most {
                isLimited = false
                leftLimit = now
            }
        } else if budget > Self.enters * most {
            isLimited = true
        }
    }
}
