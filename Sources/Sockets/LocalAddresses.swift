package import WorkerInterface

/// Numbers for the addresses of ours that datagrams come to, as `Path.local` carries them.
///
/// A socket bound to a wildcard address must answer from the address that was asked, or the
/// peer's NAT and ICE agent will not know the answer.
package struct LocalAddresses {
    package struct Entry: Equatable {
        /// Which of the worker's sockets.
        package var socket: Int
        /// The source to send from; `nil`: the kernel's choice.
        package var source: Address?
        /// The interface to leave by, where the address means nothing without; else 0.
        package var interface: UInt32
    }

    private var entries: [Entry]
    private let bound: [Bool]
    /// The number given last, by socket: nearly always the next one too.
    private var recent: [UInt16]

    /// Numbers the sockets themselves first, so that every socket has one whatever happens.
    package init(_ sockets: [UDPSocket]) {
        precondition(sockets.count <= Self.capacity, "a worker has few sockets")
        entries = sockets.indices.map { Entry(socket: $0, source: nil, interface: 0) }
        bound = sockets.map { !$0.address.isWildcard }
        recent = sockets.indices.map { UInt16($0) }
    }

    /// The number for what came to `address` by `interface` on a socket.
    ///
    /// Past `capacity` it is the socket's own: the kernel then chooses the source.
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

    /// Addresses a worker tells apart; a machine has a handful.
    static let capacity = 256
}
