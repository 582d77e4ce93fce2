/// Classifier that tells outages of a path from loss by congestion.
///
/// A congested path drops the excess and always delivers some packets. During an outage of an
/// address, a radio link or a route, all packets are lost at any rate. After it the capacity is
/// unknown, and may well be the same as before. Policers that refill a token bucket at long
/// intervals look the same, but recur, so outages have a time budget.
struct Outages {
    /// Shortest complete loss in nanoseconds that may be an outage, and its least number of
    /// packets.
    private static let shortest: Int64 = 200_000_000
    private static let fewest = 5
    /// Nanoseconds of complete loss from which it is always an outage: policers deliver something
    /// once a second.
    private static let certain: Int64 = 1_000_000_000
    /// Share of the time that shorter outages may take, and the most unused budget in nanoseconds.
    private static let share = 0.15
    private static let most = 1_000_000_000.0

    private var saved = most
    private var judged: Int64 = 0

    /// Decides whether a complete loss is an outage, which says nothing of the path's capacity.
    ///
    /// - Parameters:
    ///   - start: The send time of the first lost packet, in nanoseconds.
    ///   - end: The send time of the next packet that arrived.
    ///   - packets: The number of lost packets, all those sent in between.
    /// - Returns: Whether it is an outage.
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
