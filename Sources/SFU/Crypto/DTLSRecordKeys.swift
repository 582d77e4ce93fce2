internal import COpenSSL
import WorkerInterface

// Keys from a finished handshake.
extension DTLSRecordState {
    mutating func wipe() {
        unsafe withUnsafeMutableBytes(of: &self) { bytes in
            unsafe OPENSSL_cleanse(bytes.baseAddress, bytes.count)
        }
    }

    /// Derives the keys of both directions (RFC 5246 §6.3) from a finished handshake; returns
    /// whether that was possible.
    mutating func takeKeys(of ssl: OpaquePointer, role: DTLSRole) -> Bool {
        guard unsafe SSL_version(ssl) == DTLS1_2_VERSION,
            let cipher = unsafe SSL_get_current_cipher(ssl),
            let digest = unsafe EVP_MD_get0_name(SSL_CIPHER_get_handshake_digest(cipher)),
            let session = unsafe SSL_get_session(ssl)
        else { return false }
        switch unsafe SSL_CIPHER_get_cipher_nid(cipher) {
        case NID_aes_128_gcm: keyLength = 16
        case NID_aes_256_gcm: keyLength = 32
        default: return false
        }
        let label = "key expansion"
        // The master secret, the seed (label, server's and client's random), and the result.
        let (secret, seed, random) = (48, 48 + label.utf8.count, 32)
        let block = seed + 2 * random
        let length = 2 * (Int(keyLength) + Self.saltLength)
        return unsafe withUnsafeTemporaryAllocation(of: UInt8.self, capacity: block + length) {
            bytes in
            unsafe bytes.initialize(repeating: 0)
            defer { unsafe OPENSSL_cleanse(bytes.baseAddress, bytes.count) }
            guard let start = bytes.baseAddress else { return false }
            for (index, byte) in label.utf8.enumerated() {
                unsafe start[secret + index] = byte
            }
            let isDone =
                unsafe SSL_SESSION_get_master_key(session, start, secret) == secret
                && SSL_get_server_random(ssl, start + seed, random) == random
                && SSL_get_client_random(ssl, start + seed + random, random) == random
                && tls12_derive(
                    Self.prf,
                    digest,
                    start,
                    secret,
                    start + secret,
                    block - secret,
                    start + block,
                    length
                ) == 1
            if isDone { unsafe split(Span(_unsafeStart: start + block, count: length), role) }
            return isDone
        }
    }

    /// Takes the key block: client key, server key, client salt, server salt.
    private mutating func split(_ block: Span<UInt8>, _ role: DTLSRole) {
        let key = Int(keyLength)
        let half = key + Self.saltLength
        let (client, server) = role == .client ? (0, half) : (half, 0)
        for index in 0..<key {
            keys[client + index] = block[index]
            keys[server + index] = block[key + index]
        }
        for index in 0..<Self.saltLength {
            keys[client + key + index] = block[2 * key + index]
            keys[server + key + index] = block[2 * key + Self.saltLength + index]
        }
    }

    /// Fetched once, as OpenSSL's lookup by name is slow.
    private nonisolated(unsafe) static let prf = unsafe EVP_KDF_fetch(nil, "TLS1-PRF", nil)
}
