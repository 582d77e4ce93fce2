package import RTP
package import WorkerInterface

/// Result of processing a datagram or timeout of a DTLS association.
package enum DTLSProgress: Sendable {
    case handshaking
    /// The handshake is done; reported once.
    case connected(SRTPProfile, SRTPKeys)
    /// The handshake was done before.
    case established
    case failed(DisconnectReason)
    /// The peer or this side closed the association.
    case closed
}

/// DTLS association (RFC 6347) that provides SRTP keys (RFC 5764), over in-memory datagrams.
///
/// It belongs to one thread. In both roles the peer's certificate is checked against the
/// fingerprints before the association is `connected`. OpenSSL's `SSL` object lives only until
/// then: an established association is a `DTLSRecordLayer`.
@safe
package struct DTLSAssociation: ~Copyable {
    private enum Phase {
        case handshaking, established, closed
        case failed(DisconnectReason)
    }

    private let role: DTLSRole
    private var phase = Phase.handshaking
    /// Present until the handshake is done.
    private var handshake: DTLSHandshake?
    /// Present from then on.
    private var records: DTLSRecordLayer?
    /// Datagrams that are not yet sent, after the handshake.
    private var outgoing: [[UInt8]] = []

    /// Maximum size of a sent datagram, in bytes.
    package static let maxDatagram = 1_200
    /// Maximum number of unsent datagrams after the handshake; further ones are dropped.
    private static let maxOutgoing = 8

    /// Starts a handshake; as client, the first flight can be taken at once.
    ///
    /// Throws if OpenSSL has no memory.
    package init(
        identity: DTLSIdentity,
        role: DTLSRole,
        fingerprints: [Fingerprint],
        at now: Instant
    ) throws(DTLSError) {
        self.role = role
        handshake = try DTLSHandshake(
            identity: identity,
            role: role,
            fingerprints: fingerprints,
            at: now
        )
    }

    /// Continues an association of an earlier process, and wipes `state`; `nil` if it holds none.
    init?(resuming state: inout DTLSRecordState, role: DTLSRole) {
        guard let records = DTLSRecordLayer(taking: &state) else { return nil }
        self.role = role
        self.records = consume records
        phase = .established
    }

    /// Stores the association for the next process, now and whenever it changes.
    mutating func save(at place: SavedPlace) { records?.save(at: place) }

    /// Processes a datagram from the peer; malformed bytes are ignored.
    package mutating func receive(_ datagram: Span<UInt8>, at now: Instant) -> DTLSProgress {
        switch phase {
        case .handshaking:
            guard let handshake else { return .handshaking }
            let progress = handshake.receive(datagram, at: now)
            guard case .done(let profile, let keys) = progress else { return take(progress) }
            leave(handshake)
            noteHandshakeRecords(of: datagram)
            return .connected(profile, keys)
        case .established: return receiveRecords(datagram, at: now)
        case .closed: return .closed
        case .failed(let reason): return .failed(reason)
        }
    }

    /// Handles the deadline: retransmits the last flight, or gives up.
    package mutating func expire(at now: Instant) -> DTLSProgress {
        switch phase {
        case .handshaking: take(handshake?.expire(at: now) ?? .running)
        case .established: .established
        case .closed: .closed
        case .failed(let reason): .failed(reason)
        }
    }

    /// Deadline for the next call of `expire(at:)`; `nil` after the handshake.
    package var deadline: Instant? {
        if case .handshaking = phase { handshake?.deadline } else { nil }
    }

    /// Takes the next datagram to send, if any; `output` must have room for `maxDatagram` bytes.
    package mutating func nextDatagram(into output: inout OutputSpan<UInt8>) -> Bool {
        let datagram = outgoing.isEmpty ? handshake?.takeDatagram() : outgoing.removeFirst()
        guard let datagram else { return false }
        output.append(copying: datagram.span)
        return true
    }

    /// Closes the association; if established, a close_notify is the last datagram to send.
    package mutating func close() {
        if case .established = phase { send(.closeNotify) }
        phase = .closed
    }

    private mutating func take(_ progress: DTLSHandshake.Progress) -> DTLSProgress {
        guard case .failed(let reason) = progress else { return .handshaking }
        phase = .failed(reason)
        return .failed(reason)
    }

    /// Takes the record layer and the unsent datagrams of a finished handshake, and frees the rest.
    private mutating func leave(_ finished: DTLSHandshake) {
        records = finished.records.take()
        while let datagram = finished.takeDatagram() { outgoing.append(datagram) }
        handshake = nil
        phase = .established
    }
}

// Records after the handshake.
extension DTLSAssociation {
    /// Message types of RFC 5246 §7.4 that a record can begin with.
    private enum Message {
        static let helloRequest: UInt8 = 0
        static let clientHello: UInt8 = 1
        static let finished: UInt8 = 20
    }

    /// An alert (RFC 5246 §7.2): level and description.
    private struct Alert {
        static let closeNotify = Self(level: 1, description: 0)
        static let noRenegotiation = Self(level: 1, description: 100)

        var level: UInt8
        var description: UInt8
    }

    /// Marks the peer's Finished, which OpenSSL has read, as accepted.
    ///
    /// A copy of it would otherwise be taken for a repetition.
    private mutating func noteHandshakeRecords(of datagram: Span<UInt8>) {
        var start = 0
        while let header = DTLSRecordHeader(at: start, of: datagram) {
            if header.type == DTLSRecordLayer.ContentType.handshake.rawValue {
                _ = open(datagram.extracting(start..<header.end))
            }
            start = header.end
        }
    }

    /// Processes records after the handshake: alerts count, application data is discarded.
    private mutating func receiveRecords(_ datagram: Span<UInt8>, at now: Instant) -> DTLSProgress {
        var start = 0
        var hasAnswered = false
        while let header = DTLSRecordHeader(at: start, of: datagram) {
            let opened = open(datagram.extracting(start..<header.end))
            start = header.end
            guard let (type, content) = opened else { continue }
            switch type {
            case .alert:
                guard content.count == 2 else { continue }
                if take(Alert(level: content[0], description: content[1])) { return .closed }
            case .handshake:
                guard let message = content.first, !hasAnswered else { continue }
                hasAnswered = true
                answer(message, at: now)
            case .applicationData: break
            }
        }
        return .established
    }

    /// Answers a handshake message that came after the handshake.
    ///
    /// An authenticated record gets at most one answer, of about its own size.
    private mutating func answer(_ message: UInt8, at now: Instant) {
        switch (message, role) {
        case (Message.finished, _):
            // The peer has missed our last flight (RFC 6347 §4.2.4).
            if let flight = records?.flightToRepeat(at: now) { enqueue(flight) }
        case (Message.clientHello, .server), (Message.helloRequest, .client):
            send(.noRenegotiation)
        default: break
        }
    }

    /// Takes an alert; returns whether it ended the association.
    private mutating func take(_ alert: Alert) -> Bool {
        let isClosing = alert.description == Alert.closeNotify.description
        guard isClosing || alert.level == 2 else { return false }
        // RFC 5246 §7.2.1: a close_notify is answered by one.
        if isClosing { send(.closeNotify) }
        phase = .closed
        return true
    }

    private mutating func send(_ alert: Alert) {
        let content: [2 of UInt8] = [alert.level, alert.description]
        var isSealed = false
        let datagram = [UInt8](capacity: DTLSRecordLayer.overhead + content.count) { output in
            isSealed = records?.seal(.alert, content.span, into: &output) ?? false
        }
        if isSealed { enqueue(datagram) }
    }

    private mutating func enqueue(_ datagram: [UInt8]) {
        if outgoing.count < Self.maxOutgoing { outgoing.append(datagram) }
    }

    private mutating func open(
        _ record: Span<UInt8>
    ) -> (DTLSRecordLayer.ContentType, [UInt8])? {
        var type: DTLSRecordLayer.ContentType?
        let content = [UInt8](capacity: record.count) { output in
            type = records?.open(record, into: &output)
        }
        return type.map { ($0, content) }
    }
}
