import RTP

/// FIFO queue of paced packets; its storage grows with the backlog, up to `Pacer.maximumQueue`.
struct PacerQueue: ~Copyable {
    private static let empty = Pacer.Item(
        index: 0,
        bytes: 0,
        arrived: Instant(nanoseconds: 0),
        probe: nil
    )

    private var ring = Ring<Pacer.Item>(capacity: 1, filledWith: empty)
    private var head = 0
    private var tail = 0
    private(set) var bytes = 0

    var count: Int { tail &- head }
    var isEmpty: Bool { tail == head }
    var first: Pacer.Item? { isEmpty ? nil : ring[head] }

    /// Appends a packet; returns `false` if the queue is full.
    mutating func append(_ item: Pacer.Item) -> Bool {
        guard count < Pacer.maximumQueue else { return false }
        if count == ring.capacity { grow() }
        ring[tail] = item
        tail &+= 1
        bytes &+= Int(item.bytes)
        return true
    }

    mutating func removeFirst() -> Pacer.Item? {
        guard let item = first else { return nil }
        head &+= 1
        bytes &-= Int(item.bytes)
        return item
    }

    private mutating func grow() {
        var larger = Ring<Pacer.Item>(
            capacity: max(32, ring.capacity * 2),
            filledWith: Self.empty
        )
        for place in head..<tail { larger[place] = ring[place] }
        ring = larger
    }
}
