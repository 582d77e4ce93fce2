import RTP

/// Open HTTP connections by age, with the time and the number that each address has.
///
/// A connection carries one request and ends with the answer. One that is over the bounds takes
/// the place of the oldest: an honest request lives for milliseconds, so whoever dawdles pays.
struct HTTPConnections {
    /// The peer of a connection: an IPv4 address, or a /64 of IPv6.
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
    /// Connections that are over a bound and have not been hung up yet.
    private(set) var surplus: [Int32] = []

    /// When `expire(at:)` next has something to do.
    var deadline: Instant? { entries.first?.deadline }

    /// Whether a connection is open and within the bounds.
    func contains(_ descriptor: Int32) -> Bool {
        entries.contains { $0.descriptor == descriptor }
    }

    /// Notes a new connection, at the cost of the oldest one of its address or of all.
    mutating func open(_ descriptor: Int32, from source: Source, at now: Instant) {
        if entries.count(where: { $0.source == source }) >= Self.perAddress {
            giveUp(entries.firstIndex { $0.source == source })
        } else if entries.count >= Self.limit {
            giveUp(entries.startIndex)
        }
        let deadline = now.advanced(milliseconds: Self.milliseconds)
        entries.append(Entry(descriptor: descriptor, source: source, deadline: deadline))
    }

    /// Forgets a connection that has ended.
    mutating func close(_ descriptor: Int32) {
        entries.removeAll { $0.descriptor == descriptor }
        surplus.removeAll { $0 == descriptor }
    }

    /// Gives up the connections whose time has passed.
    mutating func expire(at now: Instant) {
        while let oldest = entries.first, oldest.deadline <= now { giveUp(entries.startIndex) }
    }

    /// Hands over the connections to hang up.
    mutating func takeSurplus() -> [Int32] {
        defer { surplus = [] }
        return surplus
    }

    private mutating func giveUp(_ index: Int?) {
        guard let index else { return }
        surplus.append(entries.remove(at: index).descriptor)
    }

    /// Connections at one time, fewer than the library accepts: those that are hung up need places
    /// until the library has noticed.
    static let limit = 48
    /// Of those, from one address.
    static let perAddress = 16
    /// From the connection to the last byte of the answer.
    static let milliseconds: Int64 = 10_000
}
