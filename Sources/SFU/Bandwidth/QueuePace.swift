/// How fast a path lets out what waits before it.
///
/// What comes out of a queue comes at the path's own rate: a large frame after small ones says at
/// once what an average over what was sent would only come to know.
struct QueuePace {
    /// Nanoseconds of waiting that are no queue yet.
    private static let idle: Int64 = 30_000_000
    private static let shortest: Int64 = 60_000_000
    private static let fewestPackets = 8
    /// Nanoseconds of which at most a pace is made.
    private static let present: Int64 = 1_000_000_000

    private var bytes = 0
    private var count = 0
    private var firstArrived: Int64?
    /// Bits a second that have come out of the queue since it has stood, where that tells.
    private(set) var rate: Double?

    /// Adds a packet that arrived, in nanoseconds of the viewer's clock, and how long it waited.
    mutating func add(bytes size: Int, arrived: Int64, waited: Int64) {
        guard waited >= Self.idle, let began = firstArrived else {
            self = QueuePace()
            firstArrived = arrived
            return
        }
        bytes &+= size
        count &+= 1
        let stretch = arrived &- began
        guard stretch <= Self.present else {
            let known = rate
            self = QueuePace()
            firstArrived = arrived
            rate = known
            return
        }
        guard count >= Self.fewestPackets, stretch >= Self.shortest else { return }
        rate = Double(bytes) * 8e9 / Double(stretch)
    }

    /// It compares with nothing that comes now.
    mutating func reset() { self = QueuePace() }
}
