/// What the first media that a viewer is sent says of its path.
///
/// A joiner is sent all at once, a keyframe first. Where that has to queue, the pace at which it
/// comes out at the other end is the path's own: known with the first reports, long before delays
/// show a trend.
struct FirstTrain {
    /// Nanoseconds of waiting that are no queue yet, and from which on one is sure.
    private static let idle: Int64 = 10_000_000
    private static let queued: Int64 = 30_000_000
    private static let fewestPackets = 5
    private static let shortest: Int64 = 25_000_000
    /// Of what came out of a queue, so that it gets shorter.
    private static let share = 0.95

    private var least: Int64 = .max
    /// When the first packet that had to wait came, by the viewer's clock, and what came after it.
    ///
    /// What made that one wait may have been a machine that stopped for a moment.
    private var began: Int64?
    private var last: Int64 = 0
    private var bytes = 0
    private var count = 0
    private var longest: Int64 = 0
    /// Bits a second that the path takes, if anything had to wait.
    private(set) var rate: Double?

    /// Adds a packet that arrived, by two clocks that run alike.
    mutating func add(bytes size: Int, sent: Int64, arrived: Int64) {
        let oneWay = arrived &- sent
        least = min(least, oneWay)
        guard oneWay &- least >= Self.idle else {
            began = nil
            return
        }
        guard let began else {
            began = arrived
            last = arrived
            bytes = 0
            count = 0
            return
        }
        bytes &+= size
        count &+= 1
        last = max(last, arrived)
        let stretch = last &- began
        guard oneWay &- least >= Self.queued, count >= Self.fewestPackets,
            stretch >= Self.shortest, stretch > longest
        else { return }
        longest = stretch
        rate = Self.share * Double(bytes) * 8e9 / Double(stretch)
    }
}
