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

    private struct Arrival: Comparable {
        var time: Instant
        var number: Int64

        static func < (left: Self, right: Self) -> Bool {
            (left.time, left.number) < (right.time, right.number)
        }
    }

    /// Buffered packets by their numbers.
    ///
    /// Small keys are sorted rather than packets, as a publisher can keep the buffer full and send
    /// in any order.
    private var packets: [Int64: TapPacket] = [:]
    private var numbers = SortedQueue<Int64>()
    /// Arrivals of buffered packets, and of ones that left before an earlier one; the first is of a
    /// buffered packet.
    private var arrivals = SortedQueue<Arrival>()
    private var due: Int64?

    package init() {}

    /// Adds a packet; ignores duplicates, and packets older than the next one due.
    package mutating func insert(_ packet: TapPacket) {
        if let due, packet.number < due { return }
        guard packets[packet.number] == nil else { return }
        packets[packet.number] = packet
        numbers.insert(packet.number)
        arrivals.insert(Arrival(time: packet.arrival, number: packet.number))
        if arrivals.count / 2 > max(numbers.count, Self.capacity) { forgetLeftArrivals() }
    }

    private mutating func forgetLeftArrivals() {
        let packets = self.packets
        arrivals.removeAll { packets[$0.number] == nil }
    }

    /// Returns the next packet that is in order or whose gap is abandoned; `nil` if there is none.
    package mutating func next(at now: Instant) -> Output? {
        guard let number = numbers.first else { return nil }
        let isDue = due == nil || number == due
        guard isDue || numbers.count > Self.capacity || deadline.map({ $0 <= now }) == true else {
            return nil
        }
        guard let packet = packets.removeValue(forKey: number) else { return nil }
        numbers.removeFirst()
        while let arrival = arrivals.first, packets[arrival.number] == nil {
            arrivals.removeFirst()
        }
        due = number &+ 1
        return Output(packet: packet, followsLoss: !isDue)
    }

    /// Time at which the gap before the buffered packets is abandoned.
    package var deadline: Instant? {
        arrivals.first?.time.advanced(milliseconds: Self.patienceMilliseconds)
    }

    package var isEmpty: Bool { packets.isEmpty }
}

/// Elements in ascending order; the first one is removed in constant time on average.
struct SortedQueue<Element: Comparable> {
    private var elements: [Element] = []
    /// Index of the first element; those before it have been removed.
    private var head = 0

    var count: Int { elements.count &- head }
    var first: Element? { head < elements.count ? elements[head] : nil }

    mutating func insert(_ element: Element) {
        var low = head
        var high = elements.count
        // Most come in order.
        if let last = elements.last, last < element { low = high }
        while low < high {
            let middle = low &+ (high &- low) / 2
            if elements[middle] < element { low = middle &+ 1 } else { high = middle }
        }
        elements.insert(element, at: low)
    }

    mutating func removeFirst() {
        guard head < elements.count else { return }
        head &+= 1
        // Only once they exceed half of the array, so that an element moves once on average.
        if head > elements.count / 2 { compact() }
    }

    mutating func removeAll(where isRemoved: (Element) -> Bool) {
        compact()
        elements.removeAll(where: isRemoved)
    }

    private mutating func compact() {
        elements.removeSubrange(..<head)
        head = 0
    }
}
