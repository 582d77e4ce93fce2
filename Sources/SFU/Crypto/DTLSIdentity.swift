internal import CDTLSAlgorithms
internal import COpenSSL
package import WorkerInterface

/// Failure to set up DTLS: OpenSSL refused a key, certificate or option.
package enum DTLSError: Error, Equatable, Sendable { case unavailable }

/// The process's DTLS certificate and the OpenSSL context that all its handshakes share.
///
/// Created once at startup. It is immutable after that, and all workers share it, as OpenSSL allows
/// for an `SSL_CTX`.
@safe
package final class DTLSIdentity: @unchecked Sendable {
    /// OpenSSL's algorithms for handshakes, which all identities share.
    private nonisolated(unsafe) static let algorithms: OpaquePointer? =
        unsafe dtls_make_algorithms()

    let context: OpaquePointer
    let profiles: [SRTPProfile]
    /// SHA-256 hash of the certificate, for `a=fingerprint`.
    package let fingerprint: Fingerprint

    /// SRTP profiles that are offered and accepted, in order of preference.
    package static let profiles: [SRTPProfile] = [
        .aeadAes128Gcm, .aeadAes256Gcm, .aes128CmSha1_80,
    ]

    /// Generates a key and a certificate and sets up OpenSSL with the default profiles.
    package convenience init() throws(DTLSError) { try self.init(profiles: Self.profiles) }

    /// Generates a key and a certificate and sets up OpenSSL with `profiles`.
    ///
    /// With no profiles, every handshake fails with `noSRTPProfile`.
    package convenience init(profiles: [SRTPProfile]) throws(DTLSError) {
        ERR_clear_error()
        defer { ERR_clear_error() }
        guard let key = unsafe ssl_make_p256_key() else { throw .unavailable }
        defer { unsafe EVP_PKEY_free(key) }
        let certificate = unsafe try Self.selfSigned(with: key)
        defer { unsafe X509_free(certificate) }
        try unsafe self.init(key, certificate, profiles)
    }

    /// Takes over the key and the certificate of an earlier process, as `write` has stored them.
    ///
    /// Throws `unavailable` for bytes that are none.
    package convenience init(saved: Span<UInt8>) throws(DTLSError) {
        ERR_clear_error()
        defer { ERR_clear_error() }
        guard saved.count <= Self.savedLimit else { throw .unavailable }
        typealias Pair = (key: OpaquePointer?, certificate: OpaquePointer?)
        let pair = unsafe saved.withUnsafeBufferPointer { bytes -> Pair in
            var next = bytes.baseAddress
            let key = unsafe d2i_AutoPrivateKey(nil, &next, bytes.count)
            guard unsafe key != nil, let start = bytes.baseAddress, let place = unsafe next
            else { return unsafe (key, nil) }
            let rest = unsafe bytes.count - (place - start)
            return unsafe (key, d2i_X509(nil, &next, rest))
        }
        defer {
            unsafe EVP_PKEY_free(pair.key)
            unsafe X509_free(pair.certificate)
        }
        guard let key = unsafe pair.key, let certificate = unsafe pair.certificate else {
            throw .unavailable
        }
        try unsafe self.init(key, certificate, Self.profiles)
    }

    /// Bytes that a saved identity takes at most.
    package static let savedLimit = 2_048

    /// Writes the private key and the certificate, for the next process alone; returns the bytes
    /// written, 0 if there is no room.
    ///
    /// `output` has to be memory that is wiped or kept from others.
    package func write(into output: UnsafeMutableRawBufferPointer) -> Int {
        guard let key = unsafe SSL_CTX_get0_privatekey(context),
            let certificate = unsafe SSL_CTX_get0_certificate(context)
        else { return 0 }
        let lengths = unsafe (Int(i2d_PrivateKey(key, nil)), Int(i2d_X509(certificate, nil)))
        let limit = min(output.count, Self.savedLimit)
        guard lengths.0 > 0, lengths.1 > 0, lengths.0 + lengths.1 <= limit else { return 0 }
        var next = unsafe output.bindMemory(to: UInt8.self).baseAddress
        guard unsafe i2d_PrivateKey(key, &next) > 0, unsafe i2d_X509(certificate, &next) > 0 else {
            return 0
        }
        return lengths.0 + lengths.1
    }

    /// Sets up OpenSSL with a key and its certificate, of which it keeps its own references.
    init(
        _ key: OpaquePointer,
        _ certificate: OpaquePointer,
        _ profiles: [SRTPProfile]
    ) throws(DTLSError) {
        guard let digest = unsafe Self.digest(of: certificate, .sha256),
            let algorithms = unsafe Self.algorithms,
            let context = unsafe SSL_CTX_new_ex(algorithms, nil, DTLS_method())
        else { throw .unavailable }
        unsafe self.context = context
        self.profiles = profiles
        fingerprint = Fingerprint(algorithm: .sha256, digest: digest)

        let configured =
            unsafe SSL_CTX_use_certificate(context, certificate) == 1
            && SSL_CTX_use_PrivateKey(context, key) == 1
            && Self.configure(context, profiles)
        guard configured else { throw .unavailable }
    }

    deinit { unsafe SSL_CTX_free(context) }

    /// Returns the hash of a certificate, or `nil` if OpenSSL cannot compute it.
    package static func digest(
        of certificate: OpaquePointer,
        _ kind: Fingerprint.Algorithm
    ) -> [UInt8]? {
        let algorithm: OpaquePointer? =
            switch kind {
            case .sha256: unsafe EVP_sha256()
            case .sha384: unsafe EVP_sha384()
            case .sha512: unsafe EVP_sha512()
            }
        let bytes = unsafe [UInt8](unsafeUninitializedCapacity: 64) { buffer, filled in
            var length: UInt32 = 0
            if unsafe X509_digest(certificate, algorithm, buffer.baseAddress, &length) == 1 {
                filled = Int(length)
            }
        }
        return bytes.isEmpty ? nil : bytes
    }

    private static func configure(_ context: OpaquePointer, _ profiles: [SRTPProfile]) -> Bool {
        // `DTLSRecordLayer`, which goes on after the handshake, has this version and cipher only.
        guard unsafe ssl_ctx_set_version(context, DTLS1_2_VERSION) == 1,
            unsafe SSL_CTX_set_cipher_list(context, "ECDHE+AESGCM") == 1,
            // P-384 and P-521 serve certificates with such keys, which Firefox can generate.
            unsafe ssl_ctx_set_groups(context, "X25519:P-256:P-384:P-521") == 1
        else { return false }
        if !profiles.isEmpty {
            let names = profiles.map(\.libraryName).joined(separator: ":")
            // Unlike the other calls, this one returns 0 on success.
            guard unsafe SSL_CTX_set_tlsext_use_srtp(context, names) == 0 else { return false }
            unsafe SSL_CTX_set_client_hello_cb(context, DTLSDatagramBIO.checkClientHello, nil)
        }
        unsafe ssl_ctx_set_datagram_options(context)
        unsafe ssl_ctx_disable_session_cache(context)
        unsafe ssl_ctx_limit_certificates(context, 16_384)

        // The peer's certificate is self-signed. Its hash in the SDP authenticates it (RFC 8122
        // §6.2), so the callback replaces X.509 verification.
        let mode = SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT
        unsafe SSL_CTX_set_verify(context, mode, nil)
        unsafe SSL_CTX_set_cert_verify_callback(context, DTLSDatagramBIO.verify, nil)
        return true
    }

    /// Creates a self-signed certificate with a random name, valid from a day ago for 365 days.
    ///
    /// The caller frees it.
    package static func selfSigned(with key: OpaquePointer) throws(DTLSError) -> OpaquePointer {
        guard let certificate = unsafe X509_new() else { throw .unavailable }
        let day = 86_400
        let serial = Digest.randomBytes(8).reduce(UInt64(0)) { $0 << 8 | UInt64($1) } >> 1
        let digits = Array("0123456789abcdef".utf8)
        let name = Digest.randomBytes(16).flatMap {
            [digits[Int($0 >> 4)], digits[Int($0 & 15)]]
        }
        let subject = unsafe X509_get_subject_name(certificate)
        let made =
            unsafe X509_set_version(certificate, 2) == 1
            && ASN1_INTEGER_set_uint64(X509_get_serialNumber(certificate), serial | 1) == 1
            && X509_gmtime_adj(X509_getm_notBefore(certificate), -day) != nil
            && X509_gmtime_adj(X509_getm_notAfter(certificate), 365 * day) != nil
            && X509_NAME_add_entry_by_txt(
                subject,
                "CN",
                MBSTRING_ASC,
                name,
                Int32(name.count),
                -1,
                0
            ) == 1
            && X509_set_issuer_name(certificate, subject) == 1
            && X509_set_pubkey(certificate, key) == 1
            && X509_sign(certificate, key, EVP_sha256()) > 0
        guard made else {
            unsafe X509_free(certificate)
            throw .unavailable
        }
        return unsafe certificate
    }
}

extension SRTPProfile {
    /// OpenSSL's name for the profile.
    fileprivate var libraryName: String {
        switch self {
        case .aes128CmSha1_80: "SRTP_AES128_CM_SHA1_80"
        case .aeadAes128Gcm: "SRTP_AEAD_AES_128_GCM"
        case .aeadAes256Gcm: "SRTP_AEAD_AES_256_GCM"
        }
    }
}
