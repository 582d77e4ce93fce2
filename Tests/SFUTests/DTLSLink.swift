import RTP

@testable import SFU
@testable import WorkerInterface

/// Two associations and the datagrams between them, in virtual time.
struct DTLSLink: ~Copyable {
    var client: DTLSAssociation
    var server: DTLSAssociation
    var now = Instant(nanoseconds: 0)
    var clientEnd: End = .open
    var serverEnd: End = .open
    /// Datagrams sent in both directions, lost ones included.
    var sent = 0

    /// Outcome of a handshake for one side.
    enum End {
        case open
        case connected(SRTPProfile, SRTPKeys)
        case failed(DisconnectReason)
        case closed

        var profile: SRTPProfile? {
            if case .connected(let profile, _) = self { profile } else { nil }
        }
        var keys: SRTPKeys? {
            if case .connected(_, let keys) = self { keys } else { nil }
        }
        var reason: DisconnectReason? {
            if case .failed(let reason) = self { reason } else { nil }
        }
        var isOpen: Bool {
            if case .open = self { true } else { false }
        }
        var isClosed: Bool {
            if case .closed = self { true } else { false }
        }

        mutating func note(_ progress: DTLSProgress) {
            switch progress {
            case .handshaking, .established: break
            case .connected(let profile, let keys): self = .connected(profile, keys)
            case .failed(let reason): self = .failed(reason)
            case .closed: self = .closed
            }
        }
    }

    /// Effect of the path on the datagram of that number: `nil` loses it.
    typealias Path = (_ number: Int, _ datagram: [UInt8]) -> [UInt8]?

    init(
        client clientIdentity: DTLSIdentity,
        server serverIdentity: DTLSIdentity,
        clientExpects: [Fingerprint]? = nil,
        serverExpects: [Fingerprint]? = nil
    ) throws {
        let start = Instant(nanoseconds: 0)
        let client = try DTLSAssociation(
            identity: clientIdentity,
            role: .client,
            fingerprints: clientExpects ?? [serverIdentity.fingerprint],
            at: start
        )
        let server = try DTLSAssociation(
            identity: serverIdentity,
            role: .server,
            fingerprints: serverExpects ?? [clientIdentity.fingerprint],
            at: start
        )
        self.init(client: client, server: server)
    }

    private init(client: consuming DTLSAssociation, server: consuming DTLSAssociation) {
        self.client = client
        self.server = server
    }

    /// Exchanges datagrams until neither side has any.
    mutating func exchange(path: Path = { _, datagram in datagram }) {
        while true {
            var moved = false
            while let datagram = takeDatagram(&client) {
                moved = true
                sent += 1
                guard let datagram = path(sent, datagram) else { continue }
                serverEnd.note(server.receive(datagram.span, at: now))
            }
            while let datagram = takeDatagram(&server) {
                moved = true
                sent += 1
                guard let datagram = path(sent, datagram) else { continue }
                clientEnd.note(client.receive(datagram.span, at: now))
            }
            if !moved { return }
        }
    }

    /// Runs the handshake until both have ended or no deadline is left.
    mutating func run(path: Path = { _, datagram in datagram }) {
        while true {
            exchange(path: path)
            // A finished side has no deadline, and answers as long as the other side asks.
            let deadlines = [client.deadline, server.deadline].compactMap(\.self)
            guard let next = deadlines.min(), next > now else { return }
            now = next
            if client.deadline.map({ $0 <= now }) ?? false {
                clientEnd.note(client.expire(at: now))
            }
            if server.deadline.map({ $0 <= now }) ?? false {
                serverEnd.note(server.expire(at: now))
            }
        }
    }
}

/// Copies out the next datagram of an association.
func takeDatagram(_ association: inout DTLSAssociation) -> [UInt8]? {
    var taken = false
    let bytes = [UInt8](capacity: DTLSAssociation.maxDatagram) { output in
        taken = association.nextDatagram(into: &output)
    }
    return taken ? bytes : nil
}
