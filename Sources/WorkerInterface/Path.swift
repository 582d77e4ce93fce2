/// IP address and port.
///
/// IPv4 is stored as IPv4-mapped IPv6 (RFC 4291 §2.5.5.2).
package struct Address: Hashable, Sendable, BitwiseCopyable, Codable {
    package var high: UInt64
    package var low: UInt64
    package var port: UInt16

    package init(high: UInt64, low: UInt64, port: UInt16) {
        self.high = high
        self.low = low
        self.port = port
    }

    /// Creates an IPv4 address from four octets in host order; `127.0.0.1` is 0x7f000001.
    package init(ipv4: UInt32, port: UInt16) {
        self.init(high: 0, low: 0xffff_0000_0000 | UInt64(ipv4), port: port)
    }

    /// Four octets in host order; `nil` unless this is an IPv4 address.
    package var ipv4: UInt32? {
        guard high == 0, low >> 32 == 0xffff else { return nil }
        return UInt32(truncatingIfNeeded: low)
    }
}

/// Network path of a datagram: the local and the remote address, or one TCP connection.
package struct Path: Hashable, Sendable, BitwiseCopyable {
    package var remote: Address
    /// Number of the worker's local address or of the connection, assigned by the socket layer.
    package var local: UInt16

    /// First number that identifies a TCP connection.
    package static let firstConnection: UInt16 = 0x8000

    /// Whether the path is a TCP connection.
    ///
    /// A connection can end, and its only remote endpoint is its peer.
    package var isConnection: Bool { local >= Self.firstConnection }

    package init(remote: Address, local: UInt16) {
        self.remote = remote
        self.local = local
    }
}
