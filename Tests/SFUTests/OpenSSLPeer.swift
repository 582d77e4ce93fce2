internal import COpenSSL
import RTP

@testable import SFU
@testable import WorkerInterface

/// DTLS peer that is OpenSSL alone, from the first record to the last.
@safe
final class OpenSSLPeer {
    private let ssl: OpaquePointer
    private let pipe: DTLSDatagramBIO
    private(set) var isConnected = false
    /// Application data that arrived.
    private(set) var received: [[UInt8]] = []

    /// Makes a peer; with `suite`, it offers only that one, by OpenSSL's name.
    init(_ identity: DTLSIdentity, _ role: DTLSRole, expects: Fingerprint, suite: String? = nil) {
        pipe = DTLSDatagramBIO(fingerprints: [expects], profiles: identity.profiles)
        guard let ssl = unsafe SSL_new(identity.context), let bio = unsafe pipe.makeBIO() else {
            preconditionFailure("OpenSSL has memory")
        }
        unsafe self.ssl = ssl
        unsafe SSL_set_bio(ssl, bio, bio)
        unsafe ssl_set_owner(ssl, Unmanaged.passUnretained(pipe).toOpaque())
        unsafe DTLS_set_timer_cb(ssl) { _, previous in
            DTLSDatagramBIO.timerDuration(after: previous)
        }
        _ = unsafe ssl_set_datagram_size(ssl, DTLSAssociation.maxDatagram)
        if let suite { unsafe SSL_set_cipher_list(ssl, suite) }
        switch role {
        case .client: unsafe SSL_set_connect_state(ssl)
        case .server: unsafe SSL_set_accept_state(ssl)
        }
        if role == .client { isConnected = unsafe SSL_do_handshake(ssl) == 1 }
    }

    deinit { unsafe SSL_free(ssl) }

    /// Whether OpenSSL has seen a close_notify or a fatal alert.
    var isClosed: Bool { unsafe SSL_get_shutdown(ssl) & SSL_RECEIVED_SHUTDOWN != 0 }

    func receive(_ datagram: [UInt8]) {
        ERR_clear_error()
        pipe.deliver(datagram.span) {
            if !isConnected { isConnected = unsafe SSL_do_handshake(ssl) == 1 }
            guard isConnected else { return }
            unsafe withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 2_000) { bytes in
                while true {
                    let count = unsafe SSL_read(ssl, bytes.baseAddress, 2_000)
                    guard count > 0 else { return }
                    received.append(unsafe Array(bytes.prefix(Int(count))))
                }
            }
        }
    }

    func write(_ content: [UInt8]) {
        _ = unsafe SSL_write(ssl, content, Int32(content.count))
    }

    /// Sends the last flight again, as after a timeout.
    func repeatFlight() {
        pipe.expireTimer()
        _ = unsafe ssl_handle_timeout(ssl)
    }

    func close() { _ = unsafe SSL_shutdown(ssl) }

    /// Starts a second handshake on the association.
    func renegotiate() {
        unsafe SSL_clear_options(ssl, UInt64(1) << 30)
        _ = unsafe SSL_renegotiate(ssl)
        _ = unsafe SSL_do_handshake(ssl)
    }

    func takeDatagram() -> [UInt8]? { pipe.takeOutgoing() }
}
