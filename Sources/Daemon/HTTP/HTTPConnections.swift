import RTP

/// Open HTTP connections by age, with a deadline for each and a limit per address.
///
/// A connection carries one request and ends with the answer. A connection beyond the limits evicts
/// the oldest: an honest request lasts milliseconds, so eviction hits slow clients.
struct HTTPConnections {
    /// Peer of a connection: an IPv4 address, or a /64 of IPv6.
    struct Source: Hashable {
        var high: UInt64
        var low: UInt64
    }

    private struct Entry {
        var descriptor: Int32
        var source: Source
        var deadline: Instant
    }

    /// Oldest first.
    private var entries: [Entry] = []
    /// Evicted or expired connections that have not been shut down yet.
    private(set) var evicted: [Int32] = []

    /// When `expire(at:)` next has something to do.
    var deadline: Instant? { entries.first?.deadline }

    /// Whether a connection is open and has not been evicted.
    func contains(_ descriptor: Int32) -> Bool {
        entries.contains { $0.descriptor == descriptor }
    }

    /// Adds a new connection; beyond a limit it evicts the oldest of its address, or of all.
    mutating func open(_ descriptor: Int32, from source: Source, at now: Instant) {
        if entries.count(where: { $0.source == source }) >= Self.perAddress {
            evict(entries.firstIndex { $0.source == source })
        } else if entries.count >= Self.limit {
            evict(entries.startIndex)
        }
        let deadline = now.advanced(milliseconds: Self.milliseconds)
        entries.append(Entry(descriptor: descriptor, source: source, deadline: deadline))
    }

    /// Removes a connection that has ended.
    mutating func close(_ descriptor: Int32) {
        entries.removeAll { $0.descriptor == descriptor }
        evicted.removeAll { $0 == descriptor }
    }

    /// Evicts the connections whose deadline has passed.
    mutating func expire(at now: Instant) {
        while let oldest = entries.first, oldest.deadline <= now { evict(entries.startIndex) }
    }

    /// Returns the connections to shut down, and clears the list.
    mutating func takeEvicted() -> [Int32] {
        defer { evicted = [] }
        return evicted
    }

    private mutating func evict(_ index: Int?) {
        guard let index else { return }
        evicted.append(entries.remove(at: index).descriptor)
    }

    /// Concurrent connections.
    ///
    /// The limit is below the library's, as shut-down connections keep their place until the
    /// library has noticed.
    static let limit = 48
    /// Concurrent connections of one address.
    static let perAddress = 16
    /// Milliseconds from the connection to the last byte of the answer.
    static let milliseconds: Int64 = 10_000
}
