import WorkerInterface

/// The destinations and the number of a handshake's datagrams.
///
/// A peer that finishes a handshake has seen our flights. It is at an address if they went there
/// and to no other, as the source of what it sends proves nothing. Until then the address may be
/// anybody's, so the datagrams of one handshake are counted.
struct HandshakeFlights {
    /// Datagrams of one handshake: several times what an honest peer needs on a lossy path.
    static let limit = 100

    private var path: Path?
    private var isSplit = false
    private var count = 0

    /// Whether one more may leave.
    var isOpen: Bool { count < Self.limit }

    /// Notes a datagram of the handshake that leaves.
    mutating func note(_ path: Path) {
        count &+= 1
        if let known = self.path, known != path { isSplit = true }
        self.path = path
    }

    /// Whether a finished handshake proves that the peer is at `path`.
    func isProof(of path: Path) -> Bool { self.path == path && !isSplit }
}
