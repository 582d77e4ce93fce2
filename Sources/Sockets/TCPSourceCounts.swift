import WorkerInterface

/// Source of connections: an IPv4 address, or an IPv6 /64, which belongs to one customer.
struct TCPSource: Hashable {
    private let high: UInt64
    private let low: UInt64

    init(_ address: Address) {
        high = address.high
        low = address.ipv4 == nil ? 0 : address.low
    }
}

/// Number of connections by source.
struct TCPSourceCounts {
    private var counts: [TCPSource: Int] = [:]

    subscript(source: TCPSource) -> Int {
        get { counts[source] ?? 0 }
        set { counts[source] = newValue == 0 ? nil : newValue }
    }
}
