/// What became of a worker's TCP connections.
package struct StreamStatistics: Hashable, Sendable {
    /// Why a connection ended, or was not taken.
    package enum Cause: String, CaseIterable, Hashable, Sendable {
        /// The peer ended it.
        case closed
        /// The network did, or the peer took nothing for too long.
        case failed
        /// No whole frame came in time.
        case silent
        /// What came first was no connectivity check of a peer of ours.
        case unauthenticated
        /// A frame longer than a datagram may be.
        case oversized
        /// Nothing came on it for long; its peer may live on another path.
        case idle
        /// Its transport has ended, or has given the path up.
        case released
        /// There were as many connections as there may be.
        case limit
        /// There were as many from its address as there may be.
        case addressLimit = "address-limit"
        /// Others came while too many had not shown who they are; the oldest of those goes.
        case crowded
        /// The process has no descriptors left.
        case descriptors
    }

    /// Connections that were taken.
    package var accepted: UInt64 = 0
    /// Connections there are.
    package var open = 0
    /// Of those, the ones that no check has validated yet.
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
