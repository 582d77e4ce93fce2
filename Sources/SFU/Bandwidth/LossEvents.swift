/// How often a path loses something, as TCP counts it: all that is lost within a round trip is one
/// event (RFC 5348 §5.2).
struct LossEvents {
    /// Nanoseconds that the last event but one may be past, while the path counts as shared.
    ///
    /// Shared with flows that go by loss, that is. On a path of our own the events of an overflow
    /// end with it.
    private static let memory: Int64 = 25_000_000_000
    /// What of a TCP flow's share is not given up.
    ///
    /// With more, a sender that has a path of 100 kbit/s
    /// for itself could keep its queue full.
    private static let share = 0.35
    private static let weight = 0.25

    private static let sizeWeight = 0.02

    private var packets = 0.0
    /// Bytes of a packet, averaged.
    private var size = 500.0
    /// Packets between two events, averaged.
    private var interval = 0.0
    private var last: Int64 = .min / 2
    private var lastButOne: Int64 = .min / 2

    mutating func note(bytes: Int, sent: Int64, isLost: Bool, roundTrip: Int64) {
        packets += 1
        size += Self.sizeWeight * (Double(bytes) - size)
        guard isLost, sent &- last > roundTrip else { return }
        interval += interval == 0 ? packets : Self.weight * (packets - interval)
        packets = 0
        lastButOne = last
        last = sent
    }

    /// The share of packets that begin an event.
    private var rate: Double {
        interval > 0 ? 1 / max(interval, packets, 1) : 0
    }

    /// What TCP would get, in bits a second.
    func fairRate(roundTrip: Int64) -> Double {
        Contention.fairRate(loss: rate, roundTrip: roundTrip, packet: size)
    }

    /// The rate in bits a second below which queues that grow are no reason to give way.
    func floor(roundTrip: Int64, at now: Int64) -> Double {
        now &- lastButOne < Self.memory ? Self.share * fairRate(roundTrip: roundTrip) : 0
    }
}
