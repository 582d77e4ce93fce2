import RTP
import WorkerInterface

/// Processing of STUN connectivity checks (RFC 8445 §7.3), without which sfud sends nothing to an
/// address.
extension Transports {
    /// Processes one STUN message; returns the reason if it is dropped.
    mutating func receiveSTUN(
        _ bytes: Span<UInt8>,
        on path: Path,
        at now: Instant,
        into output: inout Batch
    ) -> DropReason? {
        do throws(STUNError) {
            let message = try STUNMessage(bytes)
            counters.stunIn &+= 1
            guard message.messageClass == .request, message.method == 1 else {
                // Indications, which only keep bindings alive, are ignored.
                if message.messageClass == .success, message.method == 1 {
                    receiveAnswer(message, on: path, at: now, into: &output)
                }
                return nil
            }
            let drop = check(message, on: path, at: now, into: &output)
            if drop != nil { counters.stunIn &-= 1 }
            return drop
        } catch {
            return .stunMalformed
        }
    }

    /// Answers a check, or returns the reason for dropping it silently.
    private mutating func check(
        _ message: borrowing STUNMessage,
        on path: Path,
        at now: Instant,
        into output: inout Batch
    ) -> DropReason? {
        // Cheapest test first: a flood of checks from unknown addresses ends at the lookup.
        guard message.integrityOffset != nil, message.hasFingerprint,
            let (transport, isCurrent) = owner(of: message, path: path)
        else { return .stunUnauthenticated }
        guard admits(path, to: transport, at: now) else { return .stunRateLimited }
        let key = transports[transport].ice.password(isCurrent: isCurrent)
        guard message.isFingerprintValid, isAuthentic(message, key: key.span)
        else { return .stunUnauthenticated }

        let unknown = message.unknownAttributes
        if !unknown.isEmpty {
            output.append(to: path) { bytes in
                STUNWriter.bindingError(
                    message.transactionID,
                    code: 420,
                    reason: "Unknown Attribute",
                    unknown: unknown,
                    into: &bytes,
                    integrity: { Digest.hmacSHA1(key: key.span, message: $0) }
                )
            }
            return nil
        }
        // An ICE-lite agent is always controlling here: a peer that claims the same role must
        // switch (RFC 8445 §7.3.1.1).
        if message.iceControlled != nil {
            output.append(to: path) { bytes in
                STUNWriter.bindingError(
                    message.transactionID,
                    code: 487,
                    reason: "Role Conflict",
                    into: &bytes,
                    integrity: { Digest.hmacSHA1(key: key.span, message: $0) }
                )
            }
            return nil
        }
        output.append(to: path) { bytes in
            STUNWriter.bindingSuccess(
                message.transactionID,
                address: STUNAddress(
                    high: path.remote.high,
                    low: path.remote.low,
                    port: path.remote.port
                ),
                into: &bytes,
                integrity: { Digest.hmacSHA1(key: key.span, message: $0) }
            )
        }
        validate(
            path,
            of: transport,
            isNominated: message.useCandidate,
            isCurrent: isCurrent,
            at: now,
            into: &output
        )
        return nil
    }

    /// Limits the number of checks that are processed, before any HMAC is computed.
    ///
    /// There is a limit per transport, and one per unvalidated address, so that one address cannot
    /// use up the transport's limit.
    private mutating func admits(
        _ path: Path,
        to transport: TransportIndex,
        at now: Instant
    ) -> Bool {
        let limit = limits.stunChecksPerSecond
        if !transports[transport].ice.isValidated(path) {
            let second = now.nanoseconds / 1_000_000_000
            guard unvalidatedSources.admit(path.remote, limit: limit, second: second) else {
                return false
            }
        }
        return transports[transport].ice.admitCheck(from: path, limit: limit, at: now)
    }

    /// Returns the transport whose ufrag begins USERNAME, and whether that ufrag is current.
    private func owner(of message: borrowing STUNMessage, path: Path) -> (TransportIndex, Bool)? {
        let username = message.username
        guard let colon = username.first(0x3a) else { return nil }
        let local = username.extracting(0..<colon)
        let remote = username.extracting((colon + 1)..<username.count)
        guard let id = fragments[fragmentKey(local)], transports.contains(id) else { return nil }
        let transport = id.place
        guard !transports[transport].hasEnded else { return nil }
        if transports[transport].ice.isLocal(local) {
            return transports[transport].ice.isPeer(remote) ? (transport, true) : nil
        }
        // Credentials from before a restart are valid only on paths that they validated.
        let wasLocal = transports[transport].ice.wasLocal(local)
        return wasLocal && transports[transport].ice.isValidated(path) ? (transport, false) : nil
    }

    /// Returns the FNV-1a hash of a ufrag from a per-worker seed, so nobody can aim at one bucket.
    func fragmentKey(_ fragment: Span<UInt8>) -> UInt64 {
        var hash = fragmentSeed
        for index in fragment.indices {
            hash = (hash ^ UInt64(fragment[index])) &* 0x100_0000_01b3
        }
        return hash
    }

    func isAuthentic(_ message: borrowing STUNMessage, key: Span<UInt8>) -> Bool {
        let covered = [UInt8](capacity: message.bytes.count) { output in
            message.integrityInput(into: &output)
        }
        let expected = Digest.hmacSHA1(key: key, message: covered.span)
        return Digest.equal(expected.span, message.integrityTag)
    }

    /// Validates a path after an authentic check, and selects it if nominated and allowed.
    private mutating func validate(
        _ path: Path,
        of transport: TransportIndex,
        isNominated: Bool,
        isCurrent: Bool,
        at now: Instant,
        into output: inout Batch
    ) {
        let mayMove = mayMove(transport, to: path)
        let isForeign = paths[path].map { $0 != transport } ?? false
        heard(from: transport, at: now)
        if !mayMove, isNominated || isForeign {
            challenge(path, of: transport, at: now, into: &output)
        }
        // Somebody's address in use is looked at for nobody else before the proof.
        guard mayMove || !isForeign else { return }
        if isCurrent { forgetFragments(of: transport, keepingCurrent: true) }
        let evicted = transports[transport].ice.validated(
            path,
            isNominated: isNominated && mayMove,
            underCurrentCredentials: isCurrent,
            limit: limits.pathsPerTransport
        )
        if let evicted { paths.remove(evicted, transport: transport) }
        take(path, for: transport, at: now)
        setPath(transports[transport].ice.selected, of: transport, at: now)
        updateDestination(of: transport)
        if transports[transport].path == path {
            requestConsent(of: transport, at: now, into: &output)
        }
        startDTLS(transport, at: now, into: &output)
        // Deadlines that awaited a path are due now.
        schedule(transport, at: now)
    }
}

extension Span<UInt8> {
    /// Returns the first index of `byte`.
    func first(_ byte: UInt8) -> Int? {
        for index in indices where self[index] == byte { return index }
        return nil
    }
}
