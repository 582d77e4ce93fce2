internal import COpenSSL
package import WorkerInterface

/// Why there is no DTLS at all: OpenSSL refused to set itself up.
package enum DTLSError: Error, Equatable, Sendable { case unavailable }

/// The process's certificate and what its DTLS handshakes have in common.
///
/// Made once at start; immutable and shared by all workers after that, as OpenSSL allows for an
/// `SSL_CTX`.
@safe
package final class DTLSIdentity: @unchecked Sendable {
    let context: OpaquePointer
    let profiles: [SRTPProfile]
    /// The certificate's SHA-256, for `a=fingerprint`.
    package let fingerprint: Fingerprint

    /// The profiles that are offered and taken, in order of preference.
    package static let profiles: [SRTPProfile] = [
        .aeadAes128Gcm, .aeadAes256Gcm, .aes128CmSha1_80,
    ]

    /// Makes a key and a certificate and readies OpenSSL.
    package convenience init() throws(DTLSError) { try self.init(profiles: Self.profiles) }

    /// With fewer profiles, or none: then handshakes fail for want of one.
    package init(profiles: [SRTPProfile]) throws(DTLSError) {
        ERR_clear_error()
        defer { ERR_clear_error() }
        guard let key = unsafe ssl_make_p256_key() else { throw .unavailable }
        defer { unsafe EVP_PKEY_free(key) }
        let certificate = unsafe try Self.selfSigned(with: key)
        defer { unsafe X509_free(certificate) }
        guard let digest = unsafe Self.digest(of: certificate, .sha256),
            let context = unsafe SSL_CTX_new(DTLS_method())
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

    /// A certificate's hash, or `nil` if OpenSSL cannot make it.
    static func digest(of certificate: OpaquePointer, _ kind: Fingerprint.Algorithm) -> [UInt8]? {
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
        // 1.2 at least, and no upper bound: 1.3 comes with an OpenSSL that has it.
        guard unsafe ssl_ctx_set_min_version(context, DTLS1_2_VERSION) == 1,
            unsafe SSL_CTX_set_cipher_list(context, "ECDHE+AESGCM") == 1,
            // The last two are for certificates that have such a key (Firefox can make them).
            unsafe ssl_ctx_set_groups(context, "X25519:P-256:P-384:P-521") == 1
        else { return false }
        if !profiles.isEmpty {
            let names = profiles.map(\.libraryName).joined(separator: ":")
            // Unlike its neighbours this one answers 0 when all is well.
            guard unsafe SSL_CTX_set_tlsext_use_srtp(context, names) == 0 else { return false }
            unsafe SSL_CTX_set_client_hello_cb(context, DTLSPipe.greet, nil)
        }
        unsafe ssl_ctx_set_datagram_options(context)
        unsafe ssl_ctx_disable_session_cache(context)
        unsafe ssl_ctx_limit_certificates(context, 16_384)

        // The peer's certificate signs itself: what vouches for it is its hash in the SDP
        // (RFC 8122 §6.2), so this replaces all of X.509's own verification.
        let mode = SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT
        unsafe SSL_CTX_set_verify(context, mode, nil)
        unsafe SSL_CTX_set_cert_verify_callback(context, DTLSPipe.verify, nil)
        return true
    }

    /// A certificate that says nothing about us: a random name, valid for a while around now.
    private static func selfSigned(with key: OpaquePointer) throws(DTLSError) -> OpaquePointer {
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
    /// What OpenSSL calls it.
    fileprivate var libraryName: String {
        switch self {
        case .aes128CmSha1_80: "SRTP_AES128_CM_SHA1_80"
        case .aeadAes128Gcm: "SRTP_AEAD_AES_128_GCM"
        case .aeadAes256Gcm: "SRTP_AEAD_AES_256_GCM"
        }
    }
}
