package import WorkerInterface

/// Table of the local addresses that datagrams arrive at, numbered for `Path.local`.
///
/// A socket bound to a wildcard address must answer from the address that was used, or the peer's
/// NAT and ICE agent will not recognize the answer.
package struct LocalAddresses {
    package struct Entry: Equatable {
        /// Index among the worker's sockets.
        package var socket: Int
        /// Source address to send from; `nil` lets the kernel choose.
        package var source: Address?
        /// Outgoing interface, for an address that is ambiguous without; else 0.
        package var interface: UInt32
    }

    private var entries: [Entry]
    private let bound: [Bool]
    /// Number given last, by socket: nearly always the next one too.
    private var recent: [UInt16]

    /// Numbers the sockets themselves first, so that every socket has a number in any case.
    package init(_ sockets: [UDPSocket]) {
        precondition(sockets.count <= Self.capacity, "a worker has few sockets")
        entries = sockets.indices.map { Entry(socket: $0, source: nil, interface: 0) }
        bound = sockets.map { !$0.address.isWildcard }
        recent = sockets.indices.map { UInt16($0) }
    }

    /// Returns the number of the local `address` and `interface` of a socket's datagram.
    ///
    /// Beyond `capacity` it returns the socket's own number: the kernel then chooses the source.
    package mutating func number(socket: Int, address: Address, interface: UInt32) -> UInt16 {
        let isUnknown = address.high == 0 && address.low == 0
        if bound[socket] || isUnknown { return UInt16(socket) }
        let entry = Entry(
            socket: socket,
            source: address,
            interface: address.isLinkLocal && address.isIPv6 ? interface : 0
        )
        if entries[Int(recent[socket])] == entry { return recent[socket] }
        if let known = entries.firstIndex(of: entry) {
            recent[socket] = UInt16(known)
        } else if entries.count < Self.capacity {
            recent[socket] = UInt16(entries.count)
            entries.append(entry)
        } else {
            return UInt16(socket)
        }
        return recent[socket]
    }

    package subscript(number: UInt16) -> Entry { entries[Int(number)] }

    /// Maximum number of addresses that a worker distinguishes; a machine has a handful.
    static let capacity = 256
}
