import RTP
import WorkerInterface

/// A path that a nominated check has named while another is selected.
///
/// One thing moves media there: an answer to our own check, which nobody gives who is not there.
/// The source of a packet can be forged by the very participant who has the keys, and silence of
/// the old path is its to keep, so both only begin a check, or repeat it.
struct PathMove {
    var path: Path
    /// The nonce of our check; the answer has to know it.
    var nonce: UInt64
    /// When the nonce was made, and when it was last sent.
    var madeAt: Instant
    var askedAt: Instant

    /// Between two checks of ours to one path.
    static let repeatMilliseconds: Int64 = 50
    /// How long a check is repeated under one nonce, in milliseconds: longer than a round trip, as
    /// an answer to a nonce that has been replaced counts for nothing.
    static let nonceMilliseconds: Int64 = 2_000
    /// How long after a check left its answer counts, in milliseconds: a peer that was at an
    /// address once, and kept an answer, proves nothing with it later.
    static let answerMilliseconds: Int64 = 10_000
}

extension Core {
    /// Whether a check from `path` may turn media there at once: the first path of a transport, to
    /// which no media goes before the handshake, and a connection of the transport's own.
    func mayMove(_ transport: Int, to path: Path) -> Bool {
        let owner = paths[path]
        if owner >= 0, Int(owner) != transport { return false }
        guard let selected = transports[transport].ice.selected else { return true }
        return selected == path || path.isConnection
    }

    /// Asks who is at a path that the peer has named.
    ///
    /// It goes only where something authentic has come from, and once for each at most.
    mutating func challenge(
        _ path: Path,
        of transport: Int,
        at now: Instant,
        into output: inout Batch
    ) {
        guard output.free > 0,
            let nonce = transports[transport].ice.want(path, nonce: secrets.next(), at: now)
        else { return }
        sendCheck(nonce, to: path, of: transport, isCurrent: true, into: &output)
    }

    /// Sends a check of ours, under the present credentials or those before a restart; the answer
    /// has to know its nonce.
    mutating func sendCheck(
        _ nonce: UInt64,
        to path: Path,
        of transport: Int,
        isCurrent: Bool,
        into output: inout Batch
    ) {
        let key = transports[transport].ice.remotePassword(isCurrent: isCurrent)
        let username = transports[transport].ice.outgoingUsername(isCurrent: isCurrent)
        let transaction = TransactionID(
            high: UInt32(truncatingIfNeeded: transport),
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

    /// Takes an answer to our own check; what answers none comes to nothing.
    mutating func receiveAnswer(
        _ message: borrowing STUNMessage,
        on path: Path,
        at now: Instant,
        into output: inout Batch
    ) {
        let transport = Int(message.transactionID.high)
        guard transports.isOccupied(transport), !transports[transport].hasEnded,
            message.integrityOffset != nil
        else { return }
        let nonce = message.transactionID.low
        let isMove = transports[transport].ice.isMove(nonce, to: path, at: now)
        let isConsent =
            transports[transport].path == path
            && transports[transport].consent.isAsked(nonce, on: path, at: now)
        // Cheapest first: what answers nothing costs no HMAC.
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
            prove(transport, at: now)
        }
    }

    /// A packet with good keys came: asks whether the peer is there, if media waits for that.
    mutating func noteHeard(
        _ transport: Int,
        on path: Path,
        at now: Instant,
        into output: inout Batch
    ) {
        if transports[transport].path == path {
            seekConsent(of: transport, at: now, into: &output)
        } else if transports[transport].ice.move?.path == path {
            challenge(path, of: transport, at: now, into: &output)
        }
    }

    private mutating func move(
        _ transport: Int,
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
        if let evicted { paths.remove(evicted, transport: Int32(transport)) }
        take(path, for: transport)
        setPath(path, of: transport, at: now)
        prove(transport, at: now)
        startDTLS(transport, at: now, into: &output)
        schedule(transport)
    }

    /// Has media go over a path, which is got to know anew where it is another one.
    mutating func setPath(_ path: Path?, of transport: Int, at now: Instant) {
        let old = transports[transport].path
        transports[transport].path = path
        guard let path, let old, path != old, transports[transport].bandwidth != nil else { return }
        transports[transport].bandwidth?.restart(at: now)
        for position in 0..<transports[transport].slots.count {
            let slot = Int(transports[transport].slots[position])
            if slotRecords[slot].share.isMade { slotRecords[slot].share.value.forgetFailures() }
        }
        scheduleAllocation(of: transport, by: now)
    }

    /// Enters a path as this transport's; whoever had it goes on over another, or waits.
    mutating func take(_ path: Path, for transport: Int) {
        let other = paths[path]
        let index = Int32(transport)
        if other >= 0, other != index {
            transports[Int(other)].ice.forget(path)
            transports[Int(other)].path = transports[Int(other)].ice.selected
            reviewConsent(of: Int(other))
        }
        paths.insert(path, transport: index)
    }

    /// Of a peer-reflexive candidate (RFC 8445 §5.1.2.1), which no pair of ours competes with.
    private static let challengePriority: UInt32 = 110 << 24 | 65_535 << 8 | 255
}
