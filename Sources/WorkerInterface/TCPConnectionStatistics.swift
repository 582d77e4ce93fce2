/// Counters of a worker's TCP connections.
package struct TCPConnectionStatistics: Hashable, Sendable {
    /// Reason why a connection ended or was refused.
    package enum Cause: String, CaseIterable, Hashable, Sendable {
        /// The peer closed it.
        case closed
        /// The network failed, or the peer read nothing for too long.
        case failed
        /// No complete frame arrived in time.
        case silent
        /// The first frame was not an authenticated connectivity check of a known peer.
        case unauthenticated
        /// A frame was longer than a datagram may be.
        case oversized
        /// Nothing arrived on it for long; its peer may use another path.
        case idle
        /// Its transport has ended or abandoned the path.
        case released
        /// The limit of connections was reached.
        case limit
        /// The limit of connections from its address was reached.
        case addressLimit = "address-limit"
        /// It was the oldest of too many unauthenticated connections when another one arrived.
        case crowded
        /// The process had no file descriptors left.
        case descriptors
    }

    /// Connections accepted.
    package var accepted: UInt64 = 0
    /// Connections open now.
    package var open = 0
    /// Open connections that no connectivity check has validated.
    package var unchecked = 0
    private var ends = [UInt64](repeating: 0, count: Cause.allCases.count)

    package init() {}

    package subscript(cause: Cause) -> UInt64 {
        get { ends[Self.index(of: cause)] }
        set { ends[Self.index(of: cause)] = newValue }
    }

    package static func += (sum: inout Self, other: Self) {
        sum.accepted &+= other.accepted
        sum.open += other.open
        sum.unchecked += other.unchecked
        for index in sum.ends.indices { sum.ends[index] &+= other.ends[index] }
    }

    private static func index(of cause: Cause) -> Int {
        Cause.allCases.firstIndex(of: cause) ?? 0
    }
}
