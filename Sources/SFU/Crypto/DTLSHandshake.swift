internal import COpenSSL
import RTP
import WorkerInterface

/// Handshake of a DTLS association by OpenSSL, in the tens of kilobytes of an `SSL` object.
///
/// It goes as soon as the keys are agreed; `DTLSRecordLayer` goes on with them.
@safe
final class DTLSHandshake {
    enum Progress {
        case running
        case failed(DisconnectReason)
        /// The keys are agreed; the record layer waits in `records`.
        case done(SRTPProfile, SRTPKeys)
    }

    /// Record layer of the finished handshake, to be taken.
    var records: DTLSRecordLayer?
    private let ssl: OpaquePointer
    private let pipe: DTLSDatagramBIO
    private let role: DTLSRole
    private var schedule: DTLSRetransmissionTimer
    private var budget = DTLSBudget()

    /// Starts a handshake; as client, the first flight can be taken at once.
    ///
    /// Throws if OpenSSL has no memory.
    init(
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

    var deadline: Instant { schedule.deadline }

    func takeDatagram() -> [UInt8]? { pipe.takeOutgoing() }

    /// Processes a datagram from the peer; malformed bytes are ignored.
    func receive(_ datagram: Span<UInt8>, at now: Instant) -> Progress {
        let count = budget.admit(datagram)
        guard count > 0 else { return .running }
        return pipe.deliver(datagram.extracting(0..<count)) { proceed(at: now) }
    }

    /// Handles the deadline: retransmits the last flight, or gives up.
    func expire(at now: Instant) -> Progress {
        if schedule.hasEnded(at: now) { return .failed(.handshakeFailed) }
        guard schedule.takeDue(at: now) else { return .running }
        pipe.expireTimer()
        ERR_clear_error()
        defer { ERR_clear_error() }
        return unsafe ssl_handle_timeout(ssl) < 0 ? .failed(.handshakeFailed) : .running
    }

    /// Continues the handshake as far as the received bytes allow.
    private func proceed(at now: Instant) -> Progress {
        ERR_clear_error()
        defer { ERR_clear_error() }
        let before = pipe.written
        pipe.startFlight()
        let result = unsafe SSL_do_handshake(ssl)
        guard result != 1 else { return finish(at: now) }
        guard unsafe SSL_get_error(ssl, result) == SSL_ERROR_WANT_READ else {
            return .failed(pipe.refusal ?? .handshakeFailed)
        }
        if pipe.written > before { schedule.restart(at: now) }
        return .running
    }

    private func finish(at now: Instant) -> Progress {
        guard pipe.isVerified else { return .failed(.fingerprintMismatch) }
        guard let chosen = unsafe SSL_get_selected_srtp_profile(ssl),
            let profile = unsafe SRTPProfile(
                rawValue: UInt16(truncatingIfNeeded: chosen.pointee.id)
            )
        else { return .failed(.noSRTPProfile) }
        var state = DTLSRecordState()
        defer { state.wipe() }
        guard let keys = exportKeys(for: profile), unsafe state.takeKeys(of: ssl, role: role),
            let last = pipe.lastEncrypted
        else { return .failed(.handshakeFailed) }
        state.writeNext = last.number &+ 1
        state.nonceOffset = last.nonce &- last.number
        // The server sends the last flight: no session is ever continued.
        let flight = pipe.flight
        if role == .server { state.keep(flight.span, at: now) }
        records = DTLSRecordLayer(taking: &state)
        return records == nil ? .failed(.handshakeFailed) : .done(profile, keys)
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
        guard unsafe ssl_set_datagram_size(ssl, DTLSAssociation.maxDatagram) == 1,
            unsafe ssl_set_record_size(ssl, DTLSAssociation.maxDatagram) == 1
        else {
            unsafe SSL_free(ssl)
            throw .unavailable
        }
        return unsafe ssl
    }
}
