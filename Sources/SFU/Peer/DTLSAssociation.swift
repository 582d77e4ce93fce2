internal import COpenSSL
package import RTP
package import WorkerInterface

/// What has become of a handshake or an association.
package enum DTLSProgress: Sendable {
    case handshaking
    /// The handshake is done; said once.
    case connected(SRTPProfile, SRTPKeys)
    /// It was done before.
    case established
    case failed(DisconnectReason)
    /// The peer, or we, said goodbye.
    case closed
}

/// One DTLS association (RFC 6347) for SRTP keys (RFC 5764): OpenSSL over datagrams in memory.
///
/// It belongs to one thread. The peer's certificate is held against the fingerprints in both
/// roles, before anything is `connected`.
@safe
package struct DTLSAssociation: ~Copyable {
    private enum Phase {
        case handshaking, established, closed
        case failed(DisconnectReason)
    }

    private let ssl: OpaquePointer
    private let pipe: DTLSPipe
    private let role: DTLSRole
    private var phase = Phase.handshaking
    private var schedule: DTLSSchedule
    private var budget = DTLSBudget()

    /// The largest datagram that is sent, in bytes.
    package static let maxDatagram = 1_200

    /// Starts a handshake; as client the first flight can be taken at once.
    ///
    /// Throws where OpenSSL has no memory.
    package init(
        identity: DTLSIdentity,
        role: DTLSRole,
        fingerprints: [Fingerprint],
        at now: Instant
    ) throws(DTLSError) {
        let pipe = DTLSPipe(fingerprints: fingerprints, profiles: identity.profiles)
        unsafe ssl = try Self.makeSSL(identity, pipe, role)
        self.pipe = pipe
        self.role = role
        schedule = DTLSSchedule(at: now)
        if role == .client { _ = proceed(at: now) }
    }

    deinit { unsafe SSL_free(ssl) }

    /// Takes a datagram from the peer; bytes that make no sense are ignored.
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

    /// Does what is due: sends the last flight again, or gives up.
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

    /// When `expire(at:)` next has something to do; `nil` after the handshake.
    package var deadline: Instant? {
        if case .handshaking = phase { schedule.deadline } else { nil }
    }

    /// Takes the next datagram to send, if any; `output` has room for `maxDatagram` bytes.
    package mutating func nextDatagram(into output: inout OutputSpan<UInt8>) -> Bool {
        guard let datagram = pipe.takeOutgoing() else { return false }
        output.append(copying: datagram.span)
        return true
    }

    /// Ends the association; the goodbye, if one can be said, is the next datagram.
    package mutating func close() {
        guard case .established = phase else {
            phase = .closed
            return
        }
        ERR_clear_error()
        // OpenSSL writes through a null pointer where its buffers were let go; reading, though
        // there is nothing to read, brings them back.
        readIgnored()
        _ = unsafe SSL_shutdown(ssl)
        ERR_clear_error()
        phase = .closed
    }

    /// Goes on with the handshake as far as the bytes allow.
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

    /// The keying material of RFC 5764 §4.2.
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

    /// Reads what came after the handshake: goodbyes count, application data does not.
    ///
    /// A client that has missed our last flight sends its own again; OpenSSL answers that here.
    private mutating func drain() -> DTLSProgress {
        ERR_clear_error()
        defer { ERR_clear_error() }
        readIgnored()
        // Both goodbyes, close_notify and a fatal alert, are noted here once they are proved
        // genuine; `SSL_read` may fail for what anybody could have sent.
        if unsafe SSL_get_shutdown(ssl) & SSL_RECEIVED_SHUTDOWN != 0 { phase = .closed }
        unsafe SSL_free_buffers(ssl)
        if case .closed = phase { return .closed }
        return .established
    }

    /// Reads until there is no more.
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
        _ pipe: DTLSPipe,
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
        unsafe DTLS_set_timer_cb(ssl) { _, previous in DTLSPipe.timerDuration(after: previous) }
        switch role {
        case .client: unsafe SSL_set_connect_state(ssl)
        case .server: unsafe SSL_set_accept_state(ssl)
        }
        // No record is larger than a datagram; OpenSSL would keep room for one of 16 kB.
        guard unsafe ssl_set_datagram_size(ssl, maxDatagram) == 1,
            unsafe ssl_set_record_size(ssl, maxDatagram) == 1
        else {
            unsafe SSL_free(ssl)
            throw .unavailable
        }
        return unsafe ssl
    }
}
