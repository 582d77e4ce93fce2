/// Bottleneck rate measured from the first media sent to a subscriber.
///
/// A new subscriber is sent full layers at once, a keyframe first. If these packets are queued,
/// they arrive at the bottleneck's own rate. The first reports show it, long before a delay trend
/// exists.
struct StartupTrain {
    /// Queuing delay in nanoseconds below which there is no queue, and above which there surely is
    /// one.
    private static let idle: Int64 = 10_000_000
    private static let queued: Int64 = 30_000_000
    private static let fewestPackets = 5
    private static let shortest: Int64 = 25_000_000
    /// Share of the measured rate that is used, below 1 to let the queue drain.
    private static let share = 0.95

    private var least: Int64 = .max
    /// Arrival of the first queued packet on the subscriber's clock; the packets after it are
    /// counted.
    ///
    /// The first one itself is not, as a host that stalled for a moment may have delayed it.
    private var began: Int64?
    private var last: Int64 = 0
    private var bytes = 0
    private var count = 0
    private var longest: Int64 = 0
    /// Measured rate in bits a second; `nil` if nothing was queued.
    private(set) var rate: Double?

    /// Adds a packet that arrived; the two clocks run at the same speed.
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
