package import RTP
package import SFU

/// Reorder buffer of one sequence number space.
///
/// Retransmissions arrive after later packets. A gap is abandoned when the first packet behind it
/// has been buffered for `patienceMilliseconds`, or the buffer is full.
package struct ReorderBuffer {
    /// Longest time in milliseconds that a packet waits for missing earlier ones.
    package static let patienceMilliseconds: Int64 = 500
    /// Largest number of buffered packets; one more abandons the gap.
    package static let capacity = 2_048

    /// Next packet in order, and whether packets before it are lost.
    package struct Output {
        package var packet: TapPacket
        package var followsLoss: Bool
    }

    /// Buffered packets, in order of their numbers.
    private var waiting: [TapPacket] = []
    private var due: Int64?

    package init() {}

    /// Adds a packet; ignores duplicates, and packets older than the next one due.
    package mutating func insert(_ packet: TapPacket) {
        if let due, packet.number < due { return }
        var index = waiting.count
        while index > 0, waiting[index - 1].number >= packet.number { index -= 1 }
        guard index == waiting.count || waiting[index].number != packet.number else { return }
        waiting.insert(packet, at: index)
    }

    /// Returns the next packet that is in order or whose gap is abandoned; `nil` if there is none.
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

    /// Time at which the gap before the buffered packets is abandoned.
    package var deadline: Instant? {
        waiting.map(\.arrival).min()?.advanced(milliseconds: Self.patienceMilliseconds)
    }

    package var isEmpty: Bool { waiting.isEmpty }
}
