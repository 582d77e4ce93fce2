internal import COpenSSL
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

/// DTLS association (RFC 6347) that provides SRTP keys (RFC 5764), by OpenSSL over in-memory
/// datagrams.
///
/// It belongs to one thread. In both roles the peer's certificate is checked against the
/// fingerprints before the association is `connected`.
@safe
package struct DTLSAssociation: ~Copyable {
    private enum Phase {
        case handshaking, established, closed
        case failed(DisconnectReason)
    }

    private let ssl: OpaquePointer
    private let pipe: DTLSDatagramBIO
    private let role: DTLSRole
    private var phase = Phase.handshaking
    private var schedule: DTLSRetransmissionTimer
    private var budget = DTLSBudget()

    /// Maximum size of a sent datagram, in bytes.
    package static let maxDatagram = 1_200

    /// Starts a handshake; as client, the first flight can be taken at once.
    ///
    /// Throws if OpenSSL has no memory.
    package init(
        identity: DTLSIdentity,
        role: DTLSRole,
        fingerprints: [Fingerprint],
        at now: Instant
    ) throws(DTLSError) {
        let pipe = DTLSDatagramBIO(fingerprints: fingerprints, profiles: identity.profiles)
        unsafe ssl = try Self.makeSSL(identity, pipe, role)
        self.pipe = pipe
        self.role = role
        schedule = DTLSRetransmissionTimer(at: now)
        if role == .client { _ = proceed(at: now) }
    }

    deinit { unsafe SSL_free(ssl) }

    /// Processes a datagram from the peer; malformed bytes are ignored.
    package mutating func receive(_ datagram: Span<UInt8>, at now: Instant) -> DTLSProgress {
        switch phase {
        case .handshaking:
            let count = budget.admit(datagram)
            guard count > 0 else { return .handshaking }
            return pipe.deliver(datagram.extracting(0..<count)) { proceed(at: now) }
        case .established:
            let count = DTLSBudget.wholeRecords(of: datagram)
            guard count > 0 else { return .established }
            return pipe.deliver(datagram.extracting(0..<count)) { drain() }
        case .closed: return .closed
        case .failed(let reason): return .failed(reason)
        }
    }

    /// Handles the deadline: retransmits the last flight, or gives up.
    package mutating func expire(at now: Instant) -> DTLSProgress {
        switch phase {
        case .handshaking: break
        case .established: return .established
        case .closed: return .closed
        case .failed(let reason): return .failed(reason)
        }
        if schedule.hasEnded(at: now) { return fail(.handshakeFailed) }
        guard schedule.takeDue(at: now) else { return .handshaking }
        pipe.expireTimer()
        ERR_clear_error()
        defer { ERR_clear_error() }
        return unsafe ssl_handle_timeout(ssl) < 0 ? fail(.handshakeFailed) : .handshaking
    }

    /// Deadline for the next call of `expire(at:)`; `nil` after the handshake.
    package var deadline: Instant? {
        if case .handshaking = phase { schedule.deadline } else { nil }
    }

    /// Takes the next datagram to send, if any; `output` must have room for `maxDatagram` bytes.
    package mutating func nextDatagram(into output: inout OutputSpan<UInt8>) -> Bool {
        guard let datagram = pipe.takeOutgoing() else { return false }
        output.append(copying: datagram.span)
        return true
    }

    /// Closes the association; if established, a close_notify is the next datagram to send.
    package mutating func close() {
        guard case .established = phase else {
            phase = .closed
            return
        }
        ERR_clear_error()
        // OpenSSL writes through a null pointer if its buffers were freed. A read allocates them
        // again, although there is nothing to read.
        readIgnored()
        _ = unsafe SSL_shutdown(ssl)
        ERR_clear_error()
        phase = .closed
    }

    /// Continues the handshake as far as the received bytes allow.
    private mutating func proceed(at now: Instant) -> DTLSProgress {
        ERR_clear_error()
        defer { ERR_clear_error() }
        let before = pipe.written
        let result = unsafe SSL_do_handshake(ssl)
        guard result != 1 else { return finish() }
        guard unsafe SSL_get_error(ssl, result) == SSL_ERROR_WANT_READ else {
            return fail(pipe.refusal ?? .handshakeFailed)
        }
        if pipe.written > before { schedule.restart(at: now) }
        return .handshaking
    }

    private mutating func finish() -> DTLSProgress {
        guard pipe.isVerified else { return fail(.fingerprintMismatch) }
        guard let chosen = unsafe SSL_get_selected_srtp_profile(ssl),
            let profile = unsafe SRTPProfile(
                rawValue: UInt16(truncatingIfNeeded: chosen.pointee.id)
            )
        else { return fail(.noSRTPProfile) }
        guard let keys = exportKeys(for: profile) else { return fail(.handshakeFailed) }
        phase = .established
        unsafe SSL_free_buffers(ssl)
        return .connected(profile, keys)
    }

    /// Exports the keying material of RFC 5764 §4.2.
    private func exportKeys(for profile: SRTPProfile) -> SRTPKeys? {
        let length = 2 * (profile.keyLength + profile.saltLength)
        let label = "EXTRACTOR-dtls_srtp"
        return unsafe withUnsafeTemporaryAllocation(of: UInt8.self, capacity: length) { material in
            defer { unsafe OPENSSL_cleanse(material.baseAddress, length) }
            let done = unsafe SSL_export_keying_material(
                ssl,
                material.baseAddress,
                length,
                label,
                label.utf8.count,
                nil,
                0,
                0
            )
            guard done == 1 else { return nil }
            let exported = unsafe Span(_unsafeElements: UnsafeBufferPointer(material))
            return SRTPKeys(profile: profile, exported: exported, role: role)
        }
    }

    /// Processes records after the handshake: alerts count, application data is discarded.
    ///
    /// If a client missed our last flight, it sends its own again, and OpenSSL answers here.
    private mutating func drain() -> DTLSProgress {
        ERR_clear_error()
        defer { ERR_clear_error() }
        readIgnored()
        // OpenSSL sets this flag for close_notify and fatal alerts, once they are authenticated.
        // `SSL_read` may fail because of records that anyone could have sent.
        if unsafe SSL_get_shutdown(ssl) & SSL_RECEIVED_SHUTDOWN != 0 { phase = .closed }
        unsafe SSL_free_buffers(ssl)
        if case .closed = phase { return .closed }
        return .established
    }

    /// Reads and discards all available application data.
    private func readIgnored() {
        unsafe withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 1_024) { bytes in
            while unsafe SSL_read(ssl, bytes.baseAddress, Int32(bytes.count)) > 0 {}
        }
    }

    private mutating func fail(_ reason: DisconnectReason) -> DTLSProgress {
        phase = .failed(reason)
        return .failed(reason)
    }

    private static func makeSSL(
        _ identity: DTLSIdentity,
        _ pipe: DTLSDatagramBIO,
        _ role: DTLSRole
    ) throws(DTLSError) -> OpaquePointer {
        ERR_clear_error()
        defer { ERR_clear_error() }
        guard let bio = unsafe pipe.makeBIO() else { throw .unavailable }
        guard let ssl = unsafe SSL_new(identity.context) else {
            unsafe BIO_free(bio)
            throw .unavailable
        }
        unsafe SSL_set_bio(ssl, bio, bio)
        unsafe ssl_set_owner(ssl, Unmanaged.passUnretained(pipe).toOpaque())
        unsafe DTLS_set_timer_cb(ssl) { _, previous in
            DTLSDatagramBIO.timerDuration(after: previous)
        }
        switch role {
        case .client: unsafe SSL_set_connect_state(ssl)
        case .server: unsafe SSL_set_accept_state(ssl)
        }
        // No record exceeds a datagram; by default OpenSSL would reserve 16 kB.
        guard unsafe ssl_set_datagram_size(ssl, maxDatagram) == 1,
            unsafe ssl_set_record_size(ssl, maxDatagram) == 1
        else {
            unsafe SSL_free(ssl)
            throw .unavailable
        }
        return unsafe ssl
    }
}
