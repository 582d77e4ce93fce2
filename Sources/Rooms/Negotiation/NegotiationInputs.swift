package import RTP
package import WorkerInterface

/// Local parameters that go into an answer.
package struct LocalParameters: Hashable, Sendable, Codable {
    /// Host candidates, best first.
    package var candidates: [Candidate]
    /// Fingerprint of our certificate; every client supports SHA-256.
    package var fingerprint: Fingerprint
    /// RTCP CNAME of the media that we send (RFC 7022).
    package var cname: String

    package init(candidates: [Candidate], fingerprint: Fingerprint, cname: String) {
        self.candidates = candidates
        self.fingerprint = fingerprint
        self.cname = cname
    }
}

/// Local address at which clients reach sfud.
package struct Candidate: Hashable, Sendable, Codable {
    /// IPv4 or IPv6 address as text, without brackets.
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

/// Allocators of one worker's transport, publication and slot handles.
package struct WorkerIdentifiers: Sendable {
    package var transports: HandleAllocator<HandleKind.Transport>
    package var publications: HandleAllocator<HandleKind.Publication>
    package var slots: HandleAllocator<HandleKind.Slot>

    package init(transports: Int, publications: Int, slots: Int) {
        self.transports = HandleAllocator(capacity: transports)
        self.publications = HandleAllocator(capacity: publications)
        self.slots = HandleAllocator(capacity: slots)
    }
}
