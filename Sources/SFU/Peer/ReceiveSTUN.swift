import RTP
import WorkerInterface

/// Connectivity checks: the only way that an address gets anything from sfud (RFC 8445 §7.3).
extension Core {
    mutating func receiveSTUN(
        _ bytes: Span<UInt8>,
        on path: Path,
        at now: Instant,
        into output: inout Batch
    ) {
        do throws(STUNError) {
            let message = try STUNMessage(bytes)
            statistics.stunIn &+= 1
            guard message.messageClass == .request, message.method == 1 else {
                // Indications keep bindings alive.
                if message.messageClass == .success, message.method == 1 {
                    receiveAnswer(message, on: path, at: now, into: &output)
                }
                return
            }
            if let reason = check(message, on: path, at: now, into: &output) {
                statistics.stunIn &-= 1
                drops.count(reason)
            }
        } catch {
            drops.count(.stunMalformed)
        }
    }

    /// Answers a check; returns why not, where it is dropped without a word.
    private mutating func check(
        _ message: borrowing STUNMessage,
        on path: Path,
        at now: Instant,
        into output: inout Batch
    ) -> DropReason? {
        // Cheapest first: a flood of strangers' checks ends at the lookup.
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
        // A lite agent is always controlled: a peer that thinks so too must change its mind
        // (RFC 8445 §7.3.1.1).
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

    /// Bounds what is spent on checks, before any HMAC: by transport, and of addresses that no
    /// check has validated each by itself, so that one does not use up what is for all.
    private mutating func admits(_ path: Path, to transport: Int, at now: Instant) -> Bool {
        let limit = limits.stunChecksPerSecond
        if !transports[transport].ice.isValidated(path) {
            let second = now.nanoseconds / 1_000_000_000
            guard strangers.admit(path.remote, limit: limit, second: second) else { return false }
        }
        return transports[transport].ice.admitCheck(from: path, limit: limit, at: now)
    }

    /// The transport whose fragment leads USERNAME, and whether it is the present one.
    private func owner(of message: borrowing STUNMessage, path: Path) -> (Int, Bool)? {
        let username = message.username
        guard let colon = username.first(0x3a) else { return nil }
        let local = username.extracting(0..<colon)
        let remote = username.extracting((colon + 1)..<username.count)
        guard let id = fragments[fragmentKey(local)], transports.contains(id) else { return nil }
        let transport = Int(id.index)
        guard !transports[transport].hasEnded else { return nil }
        if transports[transport].ice.isLocal(local) {
            return transports[transport].ice.isPeer(remote) ? (transport, true) : nil
        }
        // Credentials from before a restart are good for what they had validated, no more.
        let wasLocal = transports[transport].ice.wasLocal(local)
        return wasLocal && transports[transport].ice.isValidated(path) ? (transport, false) : nil
    }

    /// FNV-1a with the worker's own start, so that nobody can aim at one bucket.
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

    /// The peer answers for this address: what comes from it is looked at, and if it was
    /// nominated, media goes there.
    private mutating func validate(
        _ path: Path,
        of transport: Int,
        isNominated: Bool,
        isCurrent: Bool,
        at now: Instant,
        into output: inout Batch
    ) {
        let mayMove = mayMove(transport, to: path)
        let isForeign = paths[path] >= 0 && Int(paths[path]) != transport
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
        if let evicted { paths.remove(evicted, transport: Int32(transport)) }
        take(path, for: transport)
        setPath(transports[transport].ice.selected, of: transport, at: now)
        updateDestination(of: transport)
        if transports[transport].path == path {
            seekConsent(of: transport, at: now, into: &output)
        }
        startDTLS(transport, at: now, into: &output)
        // What waited for a path is due now.
        schedule(transport)
    }
}

extension Span<UInt8> {
    /// Where `byte` first stands.
    func first(_ byte: UInt8) -> Int? {
        for index in indices where self[index] == byte { return index }
        return nil
    }
}
