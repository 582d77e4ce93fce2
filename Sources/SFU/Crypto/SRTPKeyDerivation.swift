internal import COpenSSL

/// Derivation of session keys from a master key and salt (RFC 3711 §4.3, RFC 7714 §11).
///
/// The key derivation rate is 0, as in DTLS-SRTP: each key is derived once.
enum SRTPKeyDerivation {
    /// Kind of session key; the raw value is the label of RFC 3711.
    enum Label: UInt8 {
        case rtpEncryption, rtpAuthentication, rtpSalt
        case rtcpEncryption, rtcpAuthentication, rtcpSalt
    }

    /// Fills `output` with the key for that label.
    ///
    /// A 12-byte salt counts as a 14-byte one that ends in zeros. Throws `unavailable` if OpenSSL
    /// refuses.
    static func derive(
        _ label: Label,
        key: Span<UInt8>,
        salt: Span<UInt8>,
        into output: inout MutableSpan<UInt8>
    ) throws(SRTPError) {
        precondition((key.count == 16 || key.count == 32) && salt.count <= 14)
        var counter = [16 of UInt8](repeating: 0)
        for index in salt.indices { counter[index] = salt[index] }
        counter[7] ^= label.rawValue

        guard let cipher = unsafe EVP_CIPHER_CTX_new() else { throw .unavailable }
        defer { unsafe EVP_CIPHER_CTX_free(cipher) }
        let kind = unsafe key.count == 16 ? aes128 : aes256
        for index in output.indices { output[index] = 0 }
        var written: Int32 = 0
        let done: Bool = unsafe key.withUnsafeBufferPointer { key in
            unsafe counter.span.withUnsafeBufferPointer { counter in
                unsafe output.withUnsafeMutableBufferPointer { bytes in
                    unsafe EVP_EncryptInit_ex(
                        cipher,
                        kind,
                        nil,
                        key.baseAddress,
                        counter.baseAddress
                    ) == 1
                        && EVP_EncryptUpdate(
                            cipher,
                            bytes.baseAddress,
                            &written,
                            bytes.baseAddress,
                            Int32(bytes.count)
                        ) == 1
                }
            }
        }
        guard done, Int(written) == output.count else { throw .unavailable }
    }

    /// AES ciphers, fetched once because OpenSSL's lookup by name is slow and a session needs a
    /// dozen keys.
    private nonisolated(unsafe) static let aes128 = unsafe EVP_CIPHER_fetch(nil, "AES-128-CTR", nil)
    private nonisolated(unsafe) static let aes256 = unsafe EVP_CIPHER_fetch(nil, "AES-256-CTR", nil)
}
