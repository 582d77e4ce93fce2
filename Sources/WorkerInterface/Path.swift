/// An IP address and port; IPv4 is kept as IPv4-mapped IPv6 (RFC 4291 §2.5.5.2).
package struct Address: Hashable, Sendable, BitwiseCopyable {
    package var high: UInt64
    package var low: UInt64
    package var port: UInt16

    package init(high: UInt64, low: UInt64, port: UInt16) {
        self.high = high
        self.low = low
        self.port = port
    }

    /// From four octets in host order, `127.0.0.1` being 0x7f000001.
    package init(ipv4: UInt32, port: UInt16) {
        self.init(high: 0, low: 0xffff_0000_0000 | UInt64(ipv4), port: port)
    }

    /// The four octets in host order where this is an IPv4 address.
    package var ipv4: UInt32? {
        guard high == 0, low >> 32 == 0xffff else { return nil }
        return UInt32(truncatingIfNeeded: low)
    }
}

/// The way a datagram came or goes: our address and the peer's, or one TCP connection.
package struct Path: Hashable, Sendable, BitwiseCopyable {
    package var remote: Address
    /// Which of the worker's own addresses, or which connection; the socket layer numbers them.
    package var local: UInt16

    /// The first number that stands for a connection; the core treats all numbers alike.
    package static let firstConnection: UInt16 = 0x8000

    /// Whether it is a TCP connection: it can end, and nothing but its peer is at its other end.
    package var isConnection: Bool { local >= Self.firstConnection }

    package init(remote: Address, local: UInt16) {
        self.remote = remote
        self.local = local
    }
}
