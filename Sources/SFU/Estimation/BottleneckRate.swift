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
    /// Largest part of a stretch in which nothing came, if packets came evenly.
    private static let longestPart = 0.4
    /// Nanoseconds without a packet that are a pause: packets of a path that carries the lowest
    /// layers come faster.
    private static let pause: Int64 = 100_000_000
    private static let fewestPackets = 8
    /// The same for a stretch that is sure: on a slow path packets are far apart.
    private static let fewestSlowPackets = 4
    /// Longest stretch of one measurement, in nanoseconds.
    private static let present: Int64 = 1_000_000_000

    private var bytes = 0
    private var count = 0
    private var firstArrived: Int64?
    private var lastArrived: Int64 = 0
    private var lastSent: Int64 = 0
    /// Bytes that came twice as fast as the rate measured before them.
    private var rushed = 0
    /// Longest time in nanoseconds by which a packet came later after the one before than it had
    /// left after it: a stall, if it is much of the stretch.
    private var longestGap: Int64 = 0
    /// Rate in bits a second at which the present queue drains; `nil` if it cannot be told.
    private(set) var rate: Double?
    /// Whether it was measured for long enough, from packets that came evenly.
    ///
    /// A host on the path that stalls lets packets through in a rush afterwards, and its stall
    /// would make the path look narrow.
    private(set) var isSure = false
    /// Whether nothing came for a while although packets had been sent; the rate is measured from
    /// the end of that on.
    private(set) var hasPaused = false

    /// Adds a packet that left at `sent` and arrived, on the subscriber's clock, with its queuing
    /// delay, in nanoseconds.
    mutating func add(bytes size: Int, sent: Int64, arrived: Int64, waited: Int64) {
        guard waited >= Self.idle, let began = firstArrived else {
            begin(at: arrived, sent: sent)
            return
        }
        let gap = arrived &- lastArrived &- max(0, sent &- lastSent)
        guard gap < Self.pause else {
            begin(at: arrived, sent: sent)
            hasPaused = true
            return
        }
        if let rate = rate ?? average(since: began),
            Double(arrived &- lastArrived) < Double(size) * 4e9 / rate
        {
            rushed &+= size
        }
        longestGap = max(longestGap, gap)
        lastArrived = max(lastArrived, arrived)
        lastSent = max(lastSent, sent)
        bytes &+= size
        count &+= 1
        let stretch = arrived &- began
        guard stretch <= Self.present else {
            let (known, wasSure, hadPaused) = (rate, isSure, hasPaused)
            begin(at: arrived, sent: sent)
            rate = known
            isSure = wasSure
            hasPaused = hadPaused
            return
        }
        let least = stretch >= Self.sure ? Self.fewestSlowPackets : Self.fewestPackets
        guard count >= least, stretch >= Self.shortest else { return }
        rate = Double(bytes) * 8e9 / Double(stretch)
        isSure =
            stretch >= Self.sure && Double(longestGap) <= Self.longestPart * Double(stretch)
            && Double(rushed) < Self.mostRushed * Double(bytes)
    }

    /// Rate of the packets so far; `nil` without any.
    private func average(since began: Int64) -> Double? {
        guard count > 0, lastArrived > began else { return nil }
        return Double(bytes) * 8e9 / Double(lastArrived &- began)
    }

    private mutating func begin(at arrived: Int64, sent: Int64) {
        self = BottleneckRate()
        firstArrived = arrived
        lastArrived = arrived
        lastSent = sent
    }

    /// Discards the measurement, which does not compare with later packets.
    mutating func reset() { self = BottleneckRate() }
}
