internal import COpenSSL

/// HMAC-SHA1, secure random bytes and constant-time comparison.
package enum Digest {
    /// Length of an HMAC-SHA1, in bytes.
    package static let sha1Length = 20

    /// Returns the HMAC-SHA1 of `head` followed by `body` (RFC 2104), for STUN and SRTP.
    ///
    /// There are two parts because STUN hashes a header whose length field differs from that of the
    /// packet (RFC 8489 §14.5).
    package static func hmacSHA1(
        key: Span<UInt8>,
        head: Span<UInt8>,
        body: Span<UInt8>
    ) -> [20 of UInt8] {
        var digest = [20 of UInt8](repeating: 0)
        var length = 0
        let done: Bool = unsafe key.withUnsafeBufferPointer { key in
            unsafe head.withUnsafeBufferPointer { head in
                unsafe body.withUnsafeBufferPointer { body in
                    var output = digest.mutableSpan
                    return unsafe output.withUnsafeMutableBufferPointer { output in
                        guard let context = unsafe EVP_MAC_CTX_new(hmac) else { return false }
                        defer { unsafe EVP_MAC_CTX_free(context) }
                        return unsafe hmac_sha1_start(context, nonNull(key), key.count) == 1
                            && EVP_MAC_update(context, head.baseAddress, head.count) == 1
                            && EVP_MAC_update(context, body.baseAddress, body.count) == 1
                            && EVP_MAC_final(context, output.baseAddress, &length, output.count)
                                == 1
                    }
                }
            }
        }
        precondition(done && length == sha1Length, "HMAC-SHA1 cannot fail on good parameters")
        return digest
    }

    /// Returns the HMAC-SHA1 of `message` (RFC 2104).
    package static func hmacSHA1(key: Span<UInt8>, message: Span<UInt8>) -> [20 of UInt8] {
        hmacSHA1(key: key, head: message, body: message.extracting(0..<0))
    }

    /// Returns whether both spans are equal, in a time that depends on their lengths only.
    package static func equal(_ left: Span<UInt8>, _ right: Span<UInt8>) -> Bool {
        guard left.count == right.count else { return false }
        return unsafe left.withUnsafeBufferPointer { left in
            unsafe right.withUnsafeBufferPointer { right in
                unsafe left.isEmpty
                    || CRYPTO_memcmp(left.baseAddress, right.baseAddress, left.count) == 0
            }
        }
    }

    /// Returns `count` bytes from the system's random generator, suitable for keys.
    package static func randomBytes(_ count: Int) -> [UInt8] {
        unsafe [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
            let done = unsafe RAND_bytes(buffer.baseAddress, Int32(count))
            precondition(done == 1, "the system has no randomness to give")
            filled = count
        }
    }

    /// HMAC algorithm, fetched once because OpenSSL's lookup by name is slow.
    private nonisolated(unsafe) static let hmac = unsafe EVP_MAC_fetch(nil, "HMAC", nil)

    /// Returns a non-null pointer even for an empty key.
    ///
    /// OpenSSL takes a null pointer to mean the previous key.
    private static func nonNull(_ bytes: UnsafeBufferPointer<UInt8>) -> UnsafePointer<UInt8>? {
        unsafe bytes.baseAddress ?? UnsafePointer(bitPattern: 1)
    }
}
