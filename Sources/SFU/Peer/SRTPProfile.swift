/// An SRTP protection profile, by its DTLS-SRTP number (RFC 5764 §4.1.2, RFC 7714 §14.2).
package enum SRTPProfile: UInt16, Sendable, CaseIterable {
    case aes128CmSha1_80 = 1
    case aeadAes128Gcm = 7
    case aeadAes256Gcm = 8

    /// The name in the IANA registry.
    package var name: String {
        switch self {
        case .aes128CmSha1_80: "SRTP_AES128_CM_HMAC_SHA1_80"
        case .aeadAes128Gcm: "SRTP_AEAD_AES_128_GCM"
        case .aeadAes256Gcm: "SRTP_AEAD_AES_256_GCM"
        }
    }

    /// What protection adds to an RTP packet, in bytes: the tag.
    package var rtpOverhead: Int {
        switch self {
        case .aes128CmSha1_80: 10
        case .aeadAes128Gcm, .aeadAes256Gcm: 16
        }
    }

    /// What protection adds to an RTCP packet, in bytes: the tag and the index word.
    package var rtcpOverhead: Int { rtpOverhead + 4 }

    /// Length of a master key, in bytes.
    package var keyLength: Int {
        switch self {
        case .aes128CmSha1_80, .aeadAes128Gcm: 16
        case .aeadAes256Gcm: 32
        }
    }

    /// Length of a master salt, in bytes.
    package var saltLength: Int {
        switch self {
        case .aes128CmSha1_80: 14
        case .aeadAes128Gcm, .aeadAes256Gcm: 12
        }
    }

    package var isAEAD: Bool { self != .aes128CmSha1_80 }
}

/// Why a packet was not protected or not accepted.
package enum SRTPError: Error, Equatable, Sendable {
    /// The tag does not hold.
    case authentication
    /// The index was seen before, or is older than the window reaches.
    case replay
    /// Not a packet, or shorter than its own header and tag.
    case malformed
    /// The keys' lifetime is over: 2^48 RTP or 2^31 RTCP packets (RFC 3711 §9.2).
    case exhausted
    /// There are as many incoming SSRCs as there may be.
    case streamLimit
    /// The engine has no memory or no such cipher.
    case unavailable
}
