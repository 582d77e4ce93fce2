package import RTP
package import WorkerInterface

/// What sfud says of itself in an answer.
package struct LocalDescription: Hashable, Sendable {
    /// Best first.
    package var candidates: [Candidate]
    /// Of our certificate; SHA-256 is what every client knows.
    package var fingerprint: Fingerprint
    /// The canonical name of what we send (RFC 7022).
    package var cname: String

    package init(candidates: [Candidate], fingerprint: Fingerprint, cname: String) {
        self.candidates = candidates
        self.fingerprint = fingerprint
        self.cname = cname
    }
}

/// An address that sfud is reached at.
package struct Candidate: Hashable, Sendable {
    /// In text, IPv4 or IPv6 without brackets.
    package var address: String
    package var port: UInt16
    package var transport: CandidateAttribute.Transport

    package init(
        address: String,
        port: UInt16,
        transport: CandidateAttribute.Transport = .udp
    ) {
        self.address = address
        self.port = port
        self.transport = transport
    }
}
