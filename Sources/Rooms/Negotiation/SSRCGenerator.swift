import RTP

/// Generator of SSRCs that visits all 32-bit numbers before it repeats one.
///
/// An SSRC reused for another stream would repeat packet indexes under one SRTP key, which AES-GCM
/// must never do (RFC 7714 §8.1).
struct SSRCGenerator: Sendable {
    private var value: UInt32

    init(random: inout some RandomNumberGenerator) {
        value = UInt32(truncatingIfNeeded: random.next())
    }

    /// Returns the next SSRC that is not 0 and that the peer does not use.
    mutating func next(avoiding taken: Set<SSRC>) -> SSRC {
        repeat {
            // An odd step visits all 2^32 numbers before it repeats one.
            value &+= 0x9e37_79b1
        } while value == 0 || taken.contains(SSRC(rawValue: value))
        return SSRC(rawValue: value)
    }
}
