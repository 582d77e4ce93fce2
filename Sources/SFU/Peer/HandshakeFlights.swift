/// Where a handshake's flights were sent to.
///
/// Who finishes a handshake has seen our flights; it is at an address if they went there and to no
/// other, as the source of what it sends proves nothing.
struct HandshakeFlights {
    private var path: Path?
    private var isSplit = false

    /// Notes a datagram of the handshake that leaves.
    mutating func note(_ path: Path) {
        if let known = self.path, known != path { isSplit = true }
        self.path = path
    }

    /// Whether a finished handshake proves that the peer is at `path`.
    func isProof(of path: Path) -> Bool { self.path == path && !isSplit }
}
