import RTP
import WorkerInterface

/// Pending move of media to a path that the peer nominated while another is selected.
///
/// Only an answer to our own check moves media there, because only a peer at that address can
/// answer. A participant that has the keys can forge the source of a packet, and can silence its
/// old path at will. So these two events only trigger or repeat a check.
struct PathMove {
    var path: Path
    /// Nonce of our check, which the answer must repeat.
    var nonce: UInt64
    /// Times at which the nonce was created and last sent.
    var madeAt: Instant
    var askedAt: Instant

    /// Minimum interval between two checks to one path, in milliseconds.
    static let repeatMilliseconds: Int64 = 50
    /// Period in which a check is sent again with the same nonce, in milliseconds.
    ///
    /// It exceeds a round trip, because an answer to a replaced nonce does not count.
    static let nonceMilliseconds: Int64 = 2_000
    /// Period after a check in which its answer counts, in milliseconds.
    ///
    /// It prevents a peer that has left an address from proving its presence with an old answer.
    static let answerMilliseconds: Int64 = 10_000
}

extension Transports {
    /// Returns whether a check from `path` may move media there without a challenge.
    ///
    /// It may for the first path of a transport, to which no media is sent before the handshake,
    /// for the selected path, and for a TCP connection; never for a path of another transport.
    func mayMove(_ transport: TransportIndex, to path: Path) -> Bool {
        if let owner = paths[path], owner != transport { return false }
        guard let selected = transports[transport].ice.selected else { return true }
        return selected == path || path.isConnection
    }

    /// Sends our own check to a path that the peer has nominated.
    ///
    /// Each check is triggered by an authenticated packet from that path, at most one check for
    /// each.
    mutating func challenge(
        _ path: Path,
        of transport: TransportIndex,
        at now: Instant,
        into output: inout Batch
    ) {
        guard output.free > 0,
            let nonce = transports[transport].ice.beginMove(path, nonce: secrets.next(), at: now)
        else { return }
        sendCheck(nonce, to: path, of: transport, isCurrent: true, into: &output)
    }

    /// Sends our own check, with the current credentials or those from before a restart.
    ///
    /// The answer must repeat `nonce`.
    mutating func sendCheck(
        _ nonce: UInt64,
        to path: Path,
        of transport: TransportIndex,
        isCurrent: Bool,
        into output: inout Batch
    ) {
        let key = transports[transport].ice.remotePassword(isCurrent: isCurrent)
        let username = transports[transport].ice.outgoingUsername(isCurrent: isCurrent)
        let transaction = TransactionID(
            high: UInt32(transport.offset),
            low: nonce
        )
        let tieBreaker = random.next()
        output.append(to: path) { bytes in
            STUNWriter.bindingRequest(
                transaction,
                username: username.span,
                priority: Self.challengePriority,
                tieBreaker: tieBreaker,
                isControlling: false,
                useCandidate: false,
                into: &bytes,
                integrity: { Digest.hmacSHA1(key: key.span, message: $0) }
            )
        }
    }

    /// Processes an answer to our own check; answers to no outstanding check are ignored.
    mutating func receiveAnswer(
        _ message: borrowing STUNMessage,
        on path: Path,
        at now: Instant,
        into output: inout Batch
    ) {
        guard let transport = transports.index(at: Int(message.transactionID.high)),
            !transports[transport].hasEnded,
            message.integrityOffset != nil
        else { return }
        let nonce = message.transactionID.low
        let isMove = transports[transport].ice.isMove(nonce, to: path, at: now)
        let isConsent =
            transports[transport].path == path
            && transports[transport].consent.matchesCheck(nonce, on: path, at: now)
        // Cheapest test first: an answer to no outstanding check costs no HMAC.
        guard isMove || isConsent else { return }
        let key = transports[transport].ice.remotePassword(isCurrent: true)
        if !isAuthentic(message, key: key.span) {
            // A path from before a restart keeps its credentials until the new ones are used.
            let old = transports[transport].ice.remotePassword(isCurrent: false)
            guard isConsent, isAuthentic(message, key: old.span) else { return }
        }
        if isMove {
            move(transport, to: path, at: now, into: &output)
        } else {
            sampleRoundTrip(of: transport, at: now)
            grantConsent(transport, at: now)
        }
    }

    /// Sends a check after an authenticated packet from a path whose consent or move is pending.
    mutating func noteAuthenticatedPacket(
        _ transport: TransportIndex,
        on path: Path,
        at now: Instant,
        into output: inout Batch
    ) {
        if transports[transport].path == path {
            requestConsent(of: transport, at: now, into: &output)
        } else if transports[transport].ice.move?.path == path {
            challenge(path, of: transport, at: now, into: &output)
        }
    }

    private mutating func move(
        _ transport: TransportIndex,
        to path: Path,
        at now: Instant,
        into output: inout Batch
    ) {
        let evicted = transports[transport].ice.validated(
            path,
            isNominated: true,
            underCurrentCredentials: false,
            limit: limits.pathsPerTransport
        )
        if let evicted { paths.remove(evicted, transport: transport) }
        take(path, for: transport, at: now)
        setPath(path, of: transport, at: now)
        grantConsent(transport, at: now)
        startDTLS(transport, at: now, into: &output)
        schedule(transport, at: now)
    }

    /// Selects the path for media; if it differs from the last one, bandwidth estimation restarts.
    mutating func setPath(_ path: Path?, of transport: TransportIndex, at now: Instant) {
        transports[transport].path = path
        guard let path else { return }
        let old = transports[transport].measuredPath
        transports[transport].measuredPath = path
        guard let old, path != old, transports[transport].bandwidth != nil else { return }
        transports[transport].bandwidth?.restart(at: now)
        findings.append(.pathChanged(transport))
        scheduleAllocation(of: transport, by: now, at: now)
    }

    /// Assigns a path to this transport; a previous owner falls back to another path, or waits.
    mutating func take(_ path: Path, for transport: TransportIndex, at now: Instant) {
        if let other = paths[path], other != transport {
            transports[other].ice.forget(path)
            setPath(transports[other].ice.selected, of: other, at: now)
            updateConsent(of: other, at: now)
        }
        paths.insert(path, transport: transport)
    }

    /// Priority of a peer-reflexive candidate (RFC 8445 §5.1.2.1); no candidate pair of ours
    /// competes with it.
    private static let challengePriority: UInt32 = 110 << 24 | 65_535 << 8 | 255
}

/// Loss of paths that are TCP connections.
extension Transports {
    /// Whether a connectivity check has validated `path` and its transport still holds it.
    func isValidated(_ path: Path) -> Bool { paths[path] != nil }

    /// Removes the path of a closed connection; nothing is sent on it any more.
    ///
    /// Media continues on another validated path, or waits for one. The peer counts as lost only
    /// when the usual liveness timeouts expire.
    mutating func lose(_ path: Path, at now: Instant) {
        guard let transport = paths[path] else { return }
        paths.remove(path, transport: transport)
        transports[transport].ice.forget(path)
        setPath(transports[transport].ice.selected, of: transport, at: now)
        updateConsent(of: transport, at: now)
    }
}
