import WorkerInterface

/// Destinations and number of the datagrams that one handshake has sent.
///
/// A peer that finishes a handshake has received our flights. This proves its address only if all
/// flights went to that one address, as a packet's source address proves nothing. Until then the
/// address may be a third party's, so the number of datagrams is limited.
struct HandshakeFlights {
    /// Maximum number of datagrams in one handshake: several times the need of an honest peer on a
    /// lossy path.
    static let limit = 100

    private var path: Path?
    private var isSplit = false
    private var count = 0

    /// Whether another datagram may be sent.
    var isOpen: Bool { count < Self.limit }

    /// Records a handshake datagram sent to `path`.
    mutating func note(_ path: Path) {
        count &+= 1
        if let known = self.path, known != path { isSplit = true }
        self.path = path
    }

    /// Returns whether a finished handshake proves that the peer is at `path`.
    func provesAddress(of path: Path) -> Bool { self.path == path && !isSplit }
}
