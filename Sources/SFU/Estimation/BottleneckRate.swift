/// Bottleneck rate, measured from packets that were queued on the path.
///
/// Queued packets arrive at the bottleneck's own rate. A large frame after small ones shows it at
/// once, while an average of the acknowledged rate follows slowly.
struct BottleneckRate {
    /// Queuing delay in nanoseconds below which there is no queue.
    private static let idle: Int64 = 30_000_000
    private static let shortest: Int64 = 60_000_000
    /// Stretch in nanoseconds from which the measurement is sure, and the largest share of bytes
    /// that may have come in a rush.
    private static let sure: Int64 = 200_000_000
    private static let mostRushed = 0.2
    private static let fewestPackets = 8
    /// The same for a stretch that is sure: on a slow path packets are far apart.
    private static let fewestSlowPackets = 4
    /// Longest stretch of one measurement, in nanoseconds.
    private static let present: Int64 = 1_000_000_000

    private var bytes = 0
    private var count = 0
    private var firstArrived: Int64?
    private var lastArrived: Int64 = 0
    /// Bytes that came twice as fast as the rate measured before them.
    private var rushed = 0
    /// Longest time in nanoseconds in which nothing came: a stall, if it is half of the stretch.
    private var longestGap: Int64 = 0
    /// Rate in bits a second at which the present queue drains; `nil` if it cannot be told.
    private(set) var rate: Double?
    /// Whether it was measured for long enough, from packets that came evenly.
    ///
    /// A host on the path that stalls lets packets through in a rush afterwards, and its stall
    /// would make the path look narrow.
    private(set) var isSure = false

    /// Adds a packet that arrived, on the subscriber's clock, with its queuing delay, in
    /// nanoseconds.
    mutating func add(bytes size: Int, arrived: Int64, waited: Int64) {
        guard waited >= Self.idle, let began = firstArrived else {
            begin(at: arrived)
            return
        }
        if let rate = rate ?? average(since: began),
            Double(arrived &- lastArrived) < Double(size) * 4e9 / rate
        {
            rushed &+= size
        }
        longestGap = max(longestGap, arrived &- lastArrived)
        lastArrived = arrived
        bytes &+= size
        count &+= 1
        let stretch = arrived &- began
        guard stretch <= Self.present else {
            let (known, wasSure) = (rate, isSure)
            begin(at: arrived)
            rate = known
            isSure = wasSure
            return
        }
        let least = stretch >= Self.sure ? Self.fewestSlowPackets : Self.fewestPackets
        guard count >= least, stretch >= Self.shortest else { return }
        rate = Double(bytes) * 8e9 / Double(stretch)
        isSure =
            stretch >= Self.sure && longestGap <= stretch / 2
            && Double(rushed) < Self.mostRushed * Double(bytes)
    }

    /// Rate of the packets so far; `nil` without any.
    private func average(since began: Int64) -> Double? {
        guard count > 0, lastArrived > began else { return nil }
        return Double(bytes) * 8e9 / Double(lastArrived &- began)
    }

    private mutating func begin(at arrived: Int64) {
        self = BottleneckRate()
        firstArrived = arrived
        lastArrived = arrived
    }

    /// Discards the measurement, which does not compare with later packets.
    mutating func reset() { self = BottleneckRate() }
}
