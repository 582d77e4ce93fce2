/// Whether the sender offers as much as the path is thought to carry.
///
/// A budget fills with time at three quarters of the estimate and is used up by sending. Where it
/// stays nearly full for half a second, what is acknowledged says nothing about the path's limit.
struct OfferedLoad {
    private static let share = 0.75
    /// Nanoseconds that the budget spans.
    private static let span = 500_000_000.0
    private static let enters = 0.8
    private static let leaves = 0.5

    /// Bytes; between minus and plus what the span holds.
    private var budget = 0.0
    private var last: Int64?
    /// Bytes a nanosecond.
    private var rate = 0.0
    private(set) var isLimited = false
    /// When the load last ceased to be too small.
    private(set) var leftLimit: Int64 = .min / 2

    /// Follows the estimate, in bits a second.
    mutating func setEstimate(_ bitsPerSecond: Double) {
        rate = bitsPerSecond * Self.share / 8e9
        let most = rate * Self.span
        budget = min(max(budget, -most), most)
    }

    /// Notes bytes that left, 0 to let time pass.
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
