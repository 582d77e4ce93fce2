/// Tells stretches in which a path carried nothing from loss for want of capacity.
///
/// A full path drops what is too much, and something always gets by; where an address, a radio or
/// a route is away all is lost, at any rate, and how much it carries afterwards is as unknown as
/// it is likely to be what it carried before. Policers that fill a bucket once in a while look
/// the same, but again and again.
struct Outages {
    /// Nanoseconds in which all was lost that may be an outage, and its least packets.
    private static let shortest: Int64 = 200_000_000
    private static let fewest = 5
    /// From so long on it is one: policers let something by once a second.
    private static let certain: Int64 = 1_000_000_000
    /// Of the time, what shorter ones may take, and nanoseconds that may be saved of it.
    private static let share = 0.15
    private static let most = 1_000_000_000.0

    private var saved = most
    private var judged: Int64 = 0

    /// Whether the loss of `packets` that left from `start` on, and of nothing else before `end`,
    /// says nothing of what the path carries.
    mutating func isOutage(from start: Int64, to end: Int64, packets: Int) -> Bool {
        saved = min(saved + Self.share * Double(max(0, end &- judged)), Self.most)
        judged = max(judged, end)
        let length = end &- start
        guard length >= Self.shortest, packets >= Self.fewest else { return false }
        guard length < Self.certain else { return true }
        guard Double(length) <= saved else { return false }
        saved -= Double(length)
        return true
    }
}
