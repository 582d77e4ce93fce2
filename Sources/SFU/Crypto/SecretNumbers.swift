import RTP

/// Unpredictable numbers, for nonces of our own checks and seeds of hash tables.
///
/// HMAC-SHA1 of a counter under a key (NIST SP 800-108 §4.1). `SplitMix` is not enough here: its
/// numbers appear on the wire, and a few of them reveal all the others.
struct SecretNumbers {
    private let key: [UInt8]
    private var count: UInt64 = 0

    /// Creates the generator from a key of at least 16 bytes; pass 32 from the system's generator.
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
