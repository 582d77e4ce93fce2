internal import COpenSSL
import RTP
import WorkerInterface

/// Datagram BIO for OpenSSL, and the state that OpenSSL's callbacks need.
///
/// OpenSSL's own memory BIO loses datagram boundaries; this one keeps them.
@safe
final class DTLSDatagramBIO {
    /// Fingerprints from the SDP, one of which the peer's certificate must match.
    let fingerprints: [Fingerprint]
    let profiles: [SRTPProfile]
    /// Whether the peer's certificate matched a fingerprint.
    private(set) var isVerified = false
    /// Reason for refusing the peer, if it was refused.
    private(set) var refusal: DisconnectReason?
    /// Number of writes by OpenSSL.
    private(set) var written = 0
    /// Bytes that OpenSSL has written since the last call of `startFlight`.
    private(set) var flight: [UInt8] = []
    /// Number and explicit nonce of the last encrypted record.
    private(set) var lastEncrypted: (number: UInt64, nonce: UInt64)?
    private var outgoing: [[UInt8]] = []
    /// Datagram that OpenSSL is reading, valid during `deliver` only.
    private var incoming = unsafe UnsafeRawBufferPointer(start: nil, count: 0)
    private var timer: UnsafeMutablePointer<timeval>?

    /// Maximum number of unsent datagrams; further ones are dropped, as on any network.
    private static let maxOutgoing = 64

    init(fingerprints: [Fingerprint], profiles: [SRTPProfile]) {
        self.fingerprints = fingerprints
        self.profiles = profiles
    }

    /// Creates a BIO over this pipe for both directions of an `SSL`, which then owns the BIO.
    func makeBIO() -> OpaquePointer? {
        guard let bio = unsafe BIO_new(Self.method) else { return nil }
        unsafe BIO_set_data(bio, Unmanaged.passUnretained(self).toOpaque())
        unsafe BIO_set_init(bio, 1)
        return unsafe bio
    }

    /// Lets OpenSSL read `datagram` while `body` runs.
    func deliver<Result>(_ datagram: Span<UInt8>, during body: () -> Result) -> Result {
        unsafe datagram.withUnsafeBufferPointer { bytes in
            unsafe incoming = UnsafeRawBufferPointer(bytes)
            defer { unsafe incoming = UnsafeRawBufferPointer(start: nil, count: 0) }
            return body()
        }
    }

    func startFlight() { flight = [] }

    /// Removes and returns the oldest unsent datagram.
    func takeOutgoing() -> [UInt8]? {
        outgoing.isEmpty ? nil : outgoing.removeFirst()
    }

    /// Expires OpenSSL's retransmission timer at once, if it is running.
    ///
    /// OpenSSL reads the system clock and its API offers no replacement. Up to 3.1, however,
    /// OpenSSL hands the timer itself to its BIO, where it lives as long as the `SSL`.
    func expireTimer() {
        guard Self.timerIsShared, let timer = unsafe timer else { return }
        if unsafe timer.pointee.tv_sec != 0 || timer.pointee.tv_usec != 0 {
            unsafe timer.pointee = timeval(tv_sec: 1, tv_usec: 0)
        }
    }

    /// Whether OpenSSL hands out its own timer; versions from 3.2 on hand out a copy.
    private static let timerIsShared = OpenSSL_version_num() < 0x3020_0000

    /// Returns the duration of OpenSSL's own timer, in microseconds, after one of `previous`.
    ///
    /// If `expireTimer` works, OpenSSL's timer is set so long that it never fires by itself.
    /// Otherwise it follows the schedule of `DTLSRetransmissionTimer` by OpenSSL's clock.
    static func timerDuration(after previous: UInt32) -> UInt32 {
        if timerIsShared { return 3_600_000_000 }
        guard previous > 0 else { return DTLSRetransmissionTimer.firstMilliseconds * 1_000 }
        return min(previous, DTLSRetransmissionTimer.lastMilliseconds * 500) * 2
    }
}

// Callbacks from OpenSSL.
extension DTLSDatagramBIO {
    private nonisolated(unsafe) static let method: OpaquePointer? = {
        let type = BIO_get_new_index() | BIO_TYPE_SOURCE_SINK
        guard let method = unsafe BIO_meth_new(type, "datagrams") else { return nil }
        unsafe BIO_meth_set_read(method) { bio, output, count in
            guard let bio = unsafe bio, let output = unsafe output, count > 0 else { return -1 }
            return unsafe DTLSDatagramBIO.of(bio)?.read(bio, output, Int(count)) ?? -1
        }
        unsafe BIO_meth_set_write(method) { bio, bytes, count in
            guard let bio = unsafe bio, let bytes = unsafe bytes, count > 0 else { return -1 }
            unsafe DTLSDatagramBIO.of(bio)?.write(
                UnsafeRawBufferPointer(start: bytes, count: Int(count))
            )
            return count
        }
        unsafe BIO_meth_set_ctrl(method) { bio, command, _, argument in
            switch command {
            case BIO_CTRL_FLUSH: return 1
            case BIO_CTRL_DGRAM_SET_NEXT_TIMEOUT:
                guard let bio = unsafe bio else { return 0 }
                unsafe DTLSDatagramBIO.of(bio)?.timer = argument?.assumingMemoryBound(
                    to: timeval.self
                )
                return 1
            default: return 0
            }
        }
        return unsafe method
    }()

    private static func of(_ bio: OpaquePointer) -> DTLSDatagramBIO? {
        guard let data = unsafe BIO_get_data(bio) else { return nil }
        return unsafe Unmanaged<DTLSDatagramBIO>.fromOpaque(data).takeUnretainedValue()
    }

    private func read(
        _ bio: OpaquePointer,
        _ output: UnsafeMutablePointer<CChar>,
        _ capacity: Int
    ) -> Int32 {
        unsafe bio_clear_retry(bio)
        guard unsafe !incoming.isEmpty else {
            unsafe bio_set_retry_read(bio)
            return -1
        }
        // The excess of a datagram that does not fit is lost, as on a socket.
        let length = unsafe min(capacity, incoming.count)
        let target = unsafe UnsafeMutableRawBufferPointer(start: output, count: length)
        unsafe target.copyMemory(from: UnsafeRawBufferPointer(rebasing: incoming.prefix(length)))
        unsafe incoming = UnsafeRawBufferPointer(start: nil, count: 0)
        return Int32(length)
    }

    /// Appends a record to the last datagram if it fits, or else starts a datagram.
    ///
    /// OpenSSL itself packs records only the first time that it sends a flight. A flight in five
    /// datagrams is lost five times as often as one in a single datagram.
    private func write(_ bytes: UnsafeRawBufferPointer) {
        written &+= 1
        note(unsafe Span(_unsafeBytes: bytes))
        if let last = outgoing.last, last.count + bytes.count <= DTLSAssociation.maxDatagram {
            unsafe outgoing[outgoing.count - 1].append(contentsOf: bytes)
            return
        }
        guard outgoing.count < Self.maxOutgoing else { return }
        outgoing.append(unsafe [UInt8](bytes))
    }

    private func note(_ bytes: Span<UInt8>) {
        if flight.count <= DTLSAssociation.maxDatagram {
            for index in bytes.indices { flight.append(bytes[index]) }
        }
        var start = 0
        while let record = DTLSRecordHeader(at: start, of: bytes) {
            let body = bytes.extracting(start..<record.end)
            if record.epoch == 1, body.count >= DTLSRecordLayer.overhead {
                lastEncrypted = (record.number, body.u64(at: DTLSRecordHeader.length))
            }
            start = record.end
        }
    }

    /// Refuses a client that offers none of our SRTP profiles, before any costly work.
    ///
    /// OpenSSL's `client_hello_cb`.
    static let checkClientHello:
        @convention(c) (
            OpaquePointer?, UnsafeMutablePointer<Int32>?, UnsafeMutableRawPointer?
        ) -> Int32 = { ssl, alert, _ in
            guard let ssl = unsafe ssl, let owner = unsafe ssl_owner(ssl) else {
                return SSL_CLIENT_HELLO_ERROR
            }
            let pipe = unsafe Unmanaged<DTLSDatagramBIO>.fromOpaque(owner).takeUnretainedValue()
            if unsafe pipe.hasCommonProfile(ssl) { return SSL_CLIENT_HELLO_SUCCESS }
            pipe.refusal = .noSRTPProfile
            unsafe alert?.pointee = SSL_AD_HANDSHAKE_FAILURE
            return SSL_CLIENT_HELLO_ERROR
        }

    /// Returns whether the ClientHello's use_srtp extension (RFC 5764 §4.1.1) lists one of our
    /// profiles.
    private func hasCommonProfile(_ ssl: OpaquePointer) -> Bool {
        var start: UnsafePointer<UInt8>?
        var count = 0
        let type = UInt32(TLSEXT_TYPE_use_srtp)
        guard unsafe SSL_client_hello_get0_ext(ssl, type, &start, &count) == 1 else { return false }
        let bytes = unsafe Span(
            _unsafeElements: UnsafeBufferPointer(start: start, count: count)
        )
        guard bytes.count >= 2 else { return false }
        let end = min(bytes.count, 2 + Int(bytes.u16(at: 0)))
        var offset = 2
        while offset + 2 <= end {
            if let profile = SRTPProfile(rawValue: bytes.u16(at: offset)),
                profiles.contains(profile)
            {
                return true
            }
            offset += 2
        }
        return false
    }

    /// Accepts or refuses the peer's certificate: OpenSSL's `cert_verify_callback`.
    static let verify: @convention(c) (OpaquePointer?, UnsafeMutableRawPointer?) -> Int32 = {
        store,
        _ in
        guard let store = unsafe store,
            let ssl = unsafe X509_STORE_CTX_get_ex_data(
                store,
                SSL_get_ex_data_X509_STORE_CTX_idx()
            ),
            let owner = unsafe ssl_owner(OpaquePointer(ssl))
        else { return 0 }
        let pipe = unsafe Unmanaged<DTLSDatagramBIO>.fromOpaque(owner).takeUnretainedValue()
        return unsafe pipe.accepts(store, OpaquePointer(ssl)) ? 1 : 0
    }

    private func accepts(_ store: OpaquePointer, _ ssl: OpaquePointer) -> Bool {
        // A peer without a common SRTP profile must get an alert now; later is too late.
        guard unsafe SSL_get_selected_srtp_profile(ssl) != nil else {
            refusal = .noSRTPProfile
            unsafe X509_STORE_CTX_set_error(store, X509_V_ERR_APPLICATION_VERIFICATION)
            return false
        }
        guard let certificate = unsafe X509_STORE_CTX_get0_cert(store),
            unsafe Self.isCheapToVerify(certificate)
        else {
            refusal = .handshakeFailed
            unsafe X509_STORE_CTX_set_error(store, X509_V_ERR_CERT_REJECTED)
            return false
        }
        isVerified = fingerprints.contains { fingerprint in
            let digest = unsafe DTLSIdentity.digest(of: certificate, fingerprint.algorithm)
            return digest == fingerprint.digest
        }
        guard isVerified else {
            refusal = .fingerprintMismatch
            unsafe X509_STORE_CTX_set_error(store, X509_V_ERR_CERT_REJECTED)
            return false
        }
        unsafe X509_STORE_CTX_set_error(store, X509_V_OK)
        return true
    }

    /// Returns whether verifying a signature of this certificate is cheap: EC, Ed25519, or RSA of
    /// at most 8,192 bits.
    private static func isCheapToVerify(_ certificate: OpaquePointer) -> Bool {
        guard let key = unsafe X509_get0_pubkey(certificate) else { return false }
        switch unsafe EVP_PKEY_get_base_id(key) {
        case EVP_PKEY_EC, EVP_PKEY_ED25519: return true
        case EVP_PKEY_RSA: return unsafe EVP_PKEY_get_bits(key) <= 8_192
        default: return false
        }
    }
}
