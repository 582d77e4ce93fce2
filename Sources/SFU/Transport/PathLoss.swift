import RTP
package import WorkerInterface

/// Loss of paths that are TCP connections.
extension Core {
    /// Whether a connectivity check has validated `path` and its transport still holds it.
    package func isValidated(_ path: Path) -> Bool { paths[path] >= 0 }

    /// Removes the path of a closed connection; nothing is sent on it any more.
    ///
    /// Media continues on another validated path, or waits for one. The peer counts as lost only
    /// when the usual liveness timeouts expire.
    package mutating func lose(_ path: Path) {
        let owner = paths[path]
        guard owner >= 0 else { return }
        let transport = Int(owner)
        paths.remove(path, transport: owner)
        transports[transport].ice.forget(path)
        transports[transport].path = transports[transport].ice.selected
        updateConsent(of: transport)
    }
}
