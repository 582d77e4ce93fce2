internal import COpenSSL
import SFU
package import WorkerInterface

/// Failure of a link's TLS.
package enum LinkError: Error, Equatable, Sendable {
    /// OpenSSL refuses a key, a certificate or an option.
    case unavailable
    /// The peer's bytes are no TLS, or the handshake failed.
    case protocolViolation
    /// The peer has closed the session.
    case closed
    /// Nobody listens at the peer's port.
    case refused
}

/// A node's certificate for links, made at its start, and OpenSSL's context.
@safe
package final class LinkIdentity: @unchecked Sendable {
    let context: OpaquePointer
    /// SHA-256 of the certificate, in hexadecimal digits.
    package let fingerprint: String

    package init() throws(LinkError) {
        ERR_clear_error()
        defer { ERR_clear_error() }
        guard let key = unsafe ssl_make_p256_key() else { throw .unavailable }
        defer { unsafe EVP_PKEY_free(key) }
        guard let certificate = unsafe try? DTLSIdentity.selfSigned(with: key) else {
            throw .unavailable
        }
        defer { unsafe X509_free(certificate) }
        guard let digest = unsafe DTLSIdentity.digest(of: certificate, .sha256),
            let context = unsafe SSL_CTX_new(TLS_method())
        else { throw .unavailable }
        unsafe self.context = context
        fingerprint = Self.text(of: digest)
        let isConfigured =
            unsafe SSL_CTX_use_certificate(context, certificate) == 1
            && SSL_CTX_use_PrivateKey(context, key) == 1
            && ssl_ctx_set_version(context, TLS1_3_VERSION) == 1
            && ssl_ctx_set_groups(context, "X25519:P-256") == 1
        guard isConfigured else { throw .unavailable }
        unsafe ssl_ctx_set_stream_options(context)
        unsafe ssl_ctx_disable_session_cache(context)
        unsafe ssl_ctx_limit_certificates(context, 16_384)
        // The certificate is self-signed. Its hash in the registry authenticates it, once the
        // handshake has proven that the peer has its key.
        let mode = SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT
        unsafe SSL_CTX_set_verify(context, mode, nil)
        unsafe SSL_CTX_set_cert_verify_callback(context, Self.accept, nil)
    }

    deinit { unsafe SSL_CTX_free(context) }

    private static let accept: @convention(c) (OpaquePointer?, UnsafeMutableRawPointer?) -> Int32 =
        { _, _ in 1 }

    static func text(of digest: [UInt8]) -> String {
        let digits = Array("0123456789abcdef")
        return String(digest.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] })
    }
}

/// One TLS 1.3 session, without its socket: bytes of the peer go in, bytes for the peer come out.
@safe
package final class LinkSession {
    private let session: OpaquePointer
    private let input: OpaquePointer
    private let output: OpaquePointer
    private let isClient: Bool
    package private(set) var isEstablished = false

    /// Begins a session; the side that connected is the client.
    package init(_ identity: LinkIdentity, isClient: Bool) throws(LinkError) {
        guard let session = unsafe SSL_new(identity.context) else { throw .unavailable }
        guard let input = unsafe BIO_new(BIO_s_mem()), let output = unsafe BIO_new(BIO_s_mem())
        else {
            unsafe SSL_free(session)
            throw .unavailable
        }
        self.isClient = isClient
        unsafe self.session = session
        unsafe self.input = input
        unsafe self.output = output
        // The session owns both from here on.
        unsafe SSL_set_bio(session, input, output)
        if isClient {
            unsafe SSL_set_connect_state(session)
            try proceed()
        } else {
            unsafe SSL_set_accept_state(session)
        }
    }

    deinit { unsafe SSL_free(session) }

    /// SHA-256 of the peer's certificate, in hexadecimal digits.
    package var peerFingerprint: String? {
        guard let certificate = unsafe SSL_get1_peer_certificate(session) else { return nil }
        defer { unsafe X509_free(certificate) }
        return unsafe DTLSIdentity.digest(of: certificate, .sha256).map(LinkIdentity.text)
    }

    /// Keys for the datagrams between the two nodes (RFC 8446 §7.5); `nil` before the handshake is
    /// done.
    package var datagramKeys: LinkKeys? {
        guard isEstablished else { return nil }
        // Of each direction: key, initial vector, identifier.
        let length = 32 + 12 + 8
        let label = "EXPORTER-sfud-link-datagrams"
        var result: Int32 = 0
        let block = unsafe [UInt8](unsafeUninitializedCapacity: 2 * length) { buffer, filled in
            unsafe result = SSL_export_keying_material(
                session,
                buffer.baseAddress,
                2 * length,
                label,
                label.utf8.count,
                nil,
                0,
                0
            )
            filled = result == 1 ? 2 * length : 0
        }
        guard result == 1 else { return nil }
        func direction(_ bytes: ArraySlice<UInt8>) -> LinkKeys.Direction {
            LinkKeys.Direction(
                association: bytes.suffix(8).reduce(0) { $0 << 8 | UInt64($1) },
                key: Array(bytes.prefix(32)),
                vector: Array(bytes.dropFirst(32).prefix(12))
            )
        }
        let client = direction(block.prefix(length))
        let server = direction(block.suffix(length))
        return isClient
            ? LinkKeys(outgoing: client, incoming: server)
            : LinkKeys(outgoing: server, incoming: client)
    }

    /// Takes bytes of the peer; returns what they say once the session is established.
    package func receive(_ bytes: [UInt8]) throws(LinkError) -> [UInt8] {
        guard unsafe BIO_write(input, bytes, Int32(clamping: bytes.count)) == bytes.count else {
            throw .unavailable
        }
        if !isEstablished { try proceed() }
        return isEstablished ? try read() : []
    }

    private func proceed() throws(LinkError) {
        ERR_clear_error()
        let result = unsafe SSL_do_handshake(session)
        if result == 1 {
            isEstablished = true
        } else if unsafe SSL_get_error(session, result) != SSL_ERROR_WANT_READ {
            throw .protocolViolation
        }
    }

    private func read() throws(LinkError) -> [UInt8] {
        var text: [UInt8] = []
        while true {
            ERR_clear_error()
            var result: Int32 = 0
            let chunk = unsafe [UInt8](unsafeUninitializedCapacity: Self.chunk) { buffer, filled in
                unsafe result = SSL_read(session, buffer.baseAddress, Int32(buffer.count))
                filled = Int(max(0, result))
            }
            if result > 0 {
                text += chunk
                continue
            }
            switch unsafe SSL_get_error(session, result) {
            case SSL_ERROR_WANT_READ: return text
            case SSL_ERROR_ZERO_RETURN where text.isEmpty: throw .closed
            case SSL_ERROR_ZERO_RETURN: return text
            default: throw .protocolViolation
            }
        }
    }

    /// Encrypts bytes for the peer; the session must be established.
    package func send(_ bytes: [UInt8]) throws(LinkError) {
        guard !bytes.isEmpty else { return }
        ERR_clear_error()
        guard unsafe SSL_write(session, bytes, Int32(clamping: bytes.count)) == bytes.count else {
            throw .protocolViolation
        }
    }

    /// Returns the bytes for the peer, and removes them.
    package func takeOutput() -> [UInt8] {
        var bytes: [UInt8] = []
        while true {
            let chunk = unsafe [UInt8](unsafeUninitializedCapacity: Self.chunk) { buffer, filled in
                filled = unsafe Int(
                    max(0, BIO_read(output, buffer.baseAddress, Int32(buffer.count)))
                )
            }
            guard !chunk.isEmpty else { return bytes }
            bytes += chunk
        }
    }

    private static let chunk = 1 << 14
}
