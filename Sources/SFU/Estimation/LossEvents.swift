/// Loss event rate as TCP counts it: losses within one round trip are one event (RFC 5348 §5.2).
struct LossEvents {
    /// Nanoseconds since the last event but one for which the path counts as shared with loss-based
    /// flows.
    ///
    /// On a path that is not shared, loss events end when the overflow does.
    private static let memory: Int64 = 25_000_000_000
    /// Nanoseconds for which events must have come again and again to show such a path.
    ///
    /// A path that becomes narrow has several at once, and then the queue tells what it carries.
    private static let persistence: Int64 = 3_000_000_000
    /// Share of a TCP flow's rate that is never given up.
    ///
    /// With a larger one, a sender alone on a path of 100 kbit/s could keep its queue full.
    private static let share = 0.35
    private static let weight = 0.25

    private static let sizeWeight = 0.02

    private var packets = 0.0
    /// Average packet size in bytes.
    private var size = 500.0
    /// Average number of packets between two events.
    private var interval = 0.0
    /// First event of the present series.
    private var began: Int64 = 0
    private var last: Int64 = .min / 2
    private var lastButOne: Int64 = .min / 2

    mutating func note(bytes: Int, sent: Int64, isLost: Bool, roundTrip: Int64) {
        packets += 1
        size += Self.sizeWeight * (Double(bytes) - size)
        guard isLost, sent &- last > roundTrip else { return }
        interval += interval == 0 ? packets : Self.weight * (packets - interval)
        packets = 0
        if sent &- last > Self.memory { began = sent }
        lastButOne = last
        last = sent
    }

    /// Share of packets that start a loss event.
    private var rate: Double {
        interval > 0 ? 1 / max(interval, packets, 1) : 0
    }

    /// Returns the rate that TCP would get, in bits a second.
    func fairRate(roundTrip: Int64) -> Double {
        Contention.fairRate(loss: rate, roundTrip: roundTrip, packet: size)
    }

    /// Returns the rate in bits a second below which growing queues do not reduce the rate.
    func floor(roundTrip: Int64, at now: Int64) -> Double {
        guard now &- lastButOne < Self.memory, last &- began >= Self.persistence else { return 0 }
        return Self.share * fairRate(roundTrip: roundTrip)
    }
}
