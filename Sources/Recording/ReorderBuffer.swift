package import RTP
package import SFU

/// Puts the packets of one numbering into order, as far as they come in time.
///
/// Retransmissions come later than what follows them. A gap is waited for until the first packet
/// behind it has lain here for a while; then it is given up.
package struct ReorderBuffer {
    /// How long a packet waits for those before it.
    package static let patienceMilliseconds: Int64 = 500
    /// Packets that wait; one more gives the gap up.
    package static let capacity = 2_048

    /// The next packet, and whether some before it are lost.
    package struct Output {
        package var packet: TapPacket
        package var followsLoss: Bool
    }

    /// By their numbers.
    private var waiting: [TapPacket] = []
    private var due: Int64?

    package init() {}

    package mutating func insert(_ packet: TapPacket) {
        if let due, packet.number < due { return }
        var index = waiting.count
        while index > 0, waiting[index - 1].number >= packet.number { index -= 1 }
        guard index == waiting.count || waiting[index].number != packet.number else { return }
        waiting.insert(packet, at: index)
    }

    /// The next packet that there is no reason to hold back.
    package mutating func next(at now: Instant) -> Output? {
        guard let first = waiting.first else { return nil }
        let isDue = due == nil || first.number == due
        guard isDue || waiting.count > Self.capacity || deadline.map({ $0 <= now }) == true else {
            return nil
        }
        waiting.removeFirst()
        due = first.number &+ 1
        return Output(packet: first, followsLoss: !isDue)
    }

    /// When the gap before what waits is given up.
    package var deadline: Instant? {
        waiting.map(\.arrival).min()?.advanced(milliseconds: Self.patienceMilliseconds)
    }

    package var isEmpty: Bool { waiting.isEmpty }
}
