import RTP

/// Numbers that nobody can guess from others: nonces of our own checks, seeds of hash tables.
///
/// HMAC-SHA1 of a counter under a key (NIST SP 800-108 §4.1). What `SplitMix` gives has been on
/// the wire, and whoever has seen a few of its numbers knows all the others.
struct SecretNumbers {
    private let key: [UInt8]
    private var count: UInt64 = 0

    /// Takes 32 bytes from the system's generator.
    init(key: [UInt8]) {
        precondition(key.count >= 16, "a secret has 128 bits or more")
        self.key = key
    }

    mutating func next() -> UInt64 {
        count &+= 1
        let counter = (0..<8).map { UInt8(truncatingIfNeeded: count >> (8 * UInt64($0))) }
        let digest = Digest.hmacSHA1(key: key.span, message: counter.span)
        return UInt64(digest.span.u32(at: 0)) << 32 | UInt64(digest.span.u32(at: 4))
    }
}
