import WorkerInterface

/// Where connections come from: an IPv4 address, or a /64 of IPv6, which is one customer's.
struct StreamSource: Hashable {
    private let high: UInt64
    private let low: UInt64

    init(_ address: Address) {
        high = address.high
        low = address.ipv4 == nil ? 0 : address.low
    }
}

/// How many connections each source has.
struct StreamSources {
    private var counts: [StreamSource: Int] = [:]

    subscript(source: StreamSource) -> Int {
        get { counts[source] ?? 0 }
        set { counts[source] = newValue == 0 ? nil : newValue }
    }
}
