import RTP

/// Walks through the 32-bit numbers, so that none comes twice.
///
/// An SSRC that came back for another stream would repeat packet indices under one SRTP key, which
/// AES-GCM must never see (RFC 7714 §8.1).
struct SSRCSequence: Sendable {
    private var value: UInt32

    init(random: inout some RandomNumberGenerator) {
        value = UInt32(truncatingIfNeeded: random.next())
    }

    /// The next number that is not 0 and not among those that the peer uses.
    mutating func next(avoiding taken: Set<SSRC>) -> SSRC {
        repeat {
            // An odd step visits every number before it meets the first again.
            value &+= 0x9e37_79b1
        } while value == 0 || taken.contains(SSRC(rawValue: value))
        return SSRC(rawValue: value)
    }
}
