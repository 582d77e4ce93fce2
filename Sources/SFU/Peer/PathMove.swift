internal import RTP

/// A path that a nominated check has named while media flows over another.
///
/// One of three things moves media there: an answer to our own check, which nobody gives who is not
/// there and has not the peer's password; a packet with good keys, which comes from there and was
/// never seen before; or silence of the old path, from which nobody would be taken anything.
struct PathMove {
    var path: Path
    /// What our check is called; its answer has to know it.
    var nonce: UInt64
    var askedAt: Instant

    /// Between two checks of ours to one path.
    static let repeatMilliseconds: Int64 = 50
    /// Silence on a path after which a nominated check alone moves media away from it.
    static let silenceMilliseconds: Int64 = 5_000
}

extension Core {
    /// Whether a check from `path` may turn media there at once.
    ///
    /// The first path of a transport is like that, and any where the one in use is silent.
    func mayMove(_ transport: Int, to path: Path, at now: Instant) -> Bool {
        let owner = paths[path]
        if owner >= 0, Int(owner) != transport, isInUse(Int(owner), path, at: now) { return false }
        guard let selected = transports[transport].ice.selected, selected != path else {
            return true
        }
        return !isInUse(transport, selected, at: now)
    }

    /// Whether a transport's media goes that way, and its peer was heard there lately.
    private func isInUse(_ transport: Int, _ path: Path, at now: Instant) -> Bool {
        guard transports[transport].path == path, !transports[transport].hasEnded else {
            return false
        }
        let silence = now.milliseconds(since: transports[transport].pathHeard)
        return silence < PathMove.silenceMilliseconds
    }

    /// Asks who is there: the one check that a lite agent makes.
    ///
    /// It goes only where an authentic check has come from, and once for each at most.
    mutating func challenge(
        _ path: Path,
        of transport: Int,
        at now: Instant,
        into output: inout Batch
    ) {
        let nonce = transports[transport].ice.want(path, nonce: random.next(), at: now)
        guard let nonce else { return }
        let key = transports[transport].ice.remotePassword
        let username = transports[transport].ice.outgoingUsername
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
            let move = transports[transport].ice.move, move.path == path,
            move.nonce == message.transactionID.low, message.integrityOffset != nil
        else { return }
        let key = transports[transport].ice.remotePassword
        guard isAuthentic(message, key: key.span) else { return }
        self.move(transport, to: path, at: now, into: &output)
    }

    /// A packet with good keys came: the peer is there, and where it wants to be.
    mutating func noteHeard(
        _ transport: Int,
        on path: Path,
        at now: Instant,
        into output: inout Batch
    ) {
        if transports[transport].path == path {
            transports[transport].pathHeard = now
        } else if transports[transport].ice.move?.path == path {
            move(transport, to: path, at: now, into: &output)
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
        transports[transport].pathHeard = now
        updateDestination(of: transport)
        heard(from: transport, at: now)
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
            updateDestination(of: Int(other))
        }
        paths.insert(path, transport: index)
    }

    /// Of a peer-reflexive candidate (RFC 8445 §5.1.2.1), which no pair of ours competes with.
    private static let challengePriority: UInt32 = 110 << 24 | 65_535 << 8 | 255
}
