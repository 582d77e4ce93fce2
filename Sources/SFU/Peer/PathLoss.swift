import RTP
package import WorkerInterface

/// Paths that can end by themselves: connections.
extension Core {
    /// Whether a check has validated `path`, and its transport has kept it since.
    package func isValidated(_ path: Path) -> Bool { paths[path] >= 0 }

    /// Takes note that a connection is no more: nothing goes to it from now on.
    ///
    /// Media goes on over another path that a check has validated, or else waits for one. That is
    /// silence like any other: liveness decides when the peer counts as lost.
    package mutating func lose(_ path: Path) {
        let owner = paths[path]
        guard owner >= 0 else { return }
        let transport = Int(owner)
        paths.remove(path, transport: owner)
        transports[transport].ice.forget(path)
        transports[transport].path = transports[transport].ice.selected
        reviewConsent(of: transport)
    }
}
