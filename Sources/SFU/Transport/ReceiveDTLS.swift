import RTP
import WorkerInterface

/// DTLS handshakes, and records that arrive after them.
extension Transports {
    /// Processes one datagram of DTLS records; returns the reason if it is dropped.
    mutating func receiveDTLS(
        _ bytes: Span<UInt8>,
        on path: Path,
        at now: Instant,
        into output: inout Batch
    ) -> DropReason? {
        // Addresses that have not passed an ICE check get no answer.
        guard let transport = paths[path] else { return .unknownSource }
        guard !transports[transport].hasEnded else { return .dtlsUnexpected }
        counters.dtlsIn &+= 1
        transports[transport].packetsIn &+= 1
        transports[transport].bytesIn &+= UInt64(bytes.count)
        makeAssociation(transport, at: now, into: &output)
        guard let progress = transports[transport].dtls?.receive(bytes, at: now) else { return nil }
        take(progress, transport: transport, on: path, at: now, into: &output)
        return nil
    }

    /// Starts the handshake if this side has the client role.
    mutating func startDTLS(_ transport: TransportIndex, at now: Instant, into output: inout Batch)
    {
        guard transports[transport].configuration.dtlsRole == .client,
            transports[transport].dtls == nil, let path = transports[transport].path
        else { return }
        makeAssociation(transport, at: now, into: &output)
        sendDTLS(transport, to: path, into: &output)
        schedule(transport, at: now)
    }

    private mutating func makeAssociation(
        _ transport: TransportIndex,
        at now: Instant,
        into output: inout Batch
    ) {
        // A resumed transport whose association was not saved gets no other keys.
        guard transports[transport].dtls == nil, transports[transport].srtp == nil else { return }
        do throws(DTLSError) {
            transports[transport].dtls = try DTLSAssociation(
                identity: identity,
                role: transports[transport].configuration.dtlsRole,
                fingerprints: transports[transport].configuration.fingerprints,
                at: now
            )
        } catch {
            end(transport, because: .handshakeFailed, at: now, into: &output)
        }
    }

    /// Handles the deadline of the handshake.
    mutating func expireDTLS(_ transport: TransportIndex, at now: Instant, into output: inout Batch)
    {
        guard let progress = transports[transport].dtls?.expire(at: now),
            let path = transports[transport].path
        else { return }
        take(progress, transport: transport, on: path, at: now, into: &output)
    }

    private mutating func take(
        _ progress: DTLSProgress,
        transport: TransportIndex,
        on path: Path,
        at now: Instant,
        into output: inout Batch
    ) {
        sendDTLS(transport, to: path, into: &output)
        switch progress {
        case .handshaking, .established:
            // This does not count as a sign of life: records that are not genuine are dropped
            // silently.
            break
        case .connected(let profile, let keys):
            connect(transport, profile: profile, keys: keys, at: now, into: &output)
            noteHandshake(of: transport, on: path, at: now, into: &output)
        case .failed(let reason):
            end(transport, because: reason, at: now, into: &output)
        case .closed:
            end(transport, because: .closed, at: now, into: &output)
        }
        schedule(transport, at: now)
    }

    /// Records consent after a handshake if all flights went to `path`, or else sends a consent
    /// check.
    private mutating func noteHandshake(
        of transport: TransportIndex,
        on path: Path,
        at now: Instant,
        into output: inout Batch
    ) {
        guard !transports[transport].hasEnded else { return }
        if transports[transport].path == path, transports[transport].flights.provesAddress(of: path)
        {
            grantConsent(transport, at: now)
        } else {
            requestConsent(of: transport, at: now, into: &output)
        }
    }

    mutating func sendDTLS(_ transport: TransportIndex, to path: Path, into output: inout Batch) {
        while output.free > 1,
            transports[transport].srtp != nil || transports[transport].flights.isOpen
        {
            var isDone = false
            let before = output.count
            output.append(to: path) { bytes in
                isDone = transports[transport].dtls?.nextDatagram(into: &bytes) != true
            }
            if isDone || output.count == before { return }
            if transports[transport].srtp == nil { transports[transport].flights.note(path) }
            counters.datagramsOut &+= 1
        }
    }

    mutating func connect(
        _ transport: TransportIndex,
        profile: SRTPProfile,
        keys: SRTPKeys,
        at now: Instant,
        into output: inout Batch
    ) {
        do throws(SRTPError) {
            let place = save(keysOf: transport, profile, keys)
            if let place { transports[transport].dtls?.save(at: place) }
            transports[transport].srtp = try SRTPSession(
                profile: profile,
                keys: keys,
                context: srtpContext,
                maxStreams: limits.streamsPerTransport + Transport.unsignalledLimit + 1,
                saved: place
            )
        } catch {
            return end(transport, because: .handshakeFailed, at: now, into: &output)
        }
        transports[transport].profile = profile
        noteConnected(transport, at: now)
        transports[transport].state = .connected
        updateDestination(of: transport)
        heard(from: transport, at: now)
        transports[transport].reportDue = Self.nextReport(after: now)
        note(.connected, of: transport)
    }

    /// Ends the transport; the control plane closes it later.
    mutating func end(
        _ transport: TransportIndex,
        because reason: DisconnectReason,
        at now: Instant,
        into output: inout Batch
    ) {
        guard !transports[transport].hasEnded else { return }
        noteEnd(of: transport, reason)
        release(transport)
        transports[transport].state = .ended
        note(.disconnected(reason), of: transport)
    }

    /// Releases keys, addresses and the DTLS association.
    mutating func release(_ transport: TransportIndex) {
        for path in transports[transport].ice.paths { paths.remove(path, transport: transport) }
        transports[transport].ice.forgetPaths()
        transports[transport].path = nil
        transports[transport].srtp = nil
        transports[transport].dtls = nil
        updateDestination(of: transport)
        forgetSaved(transport)
    }
}
