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

    /// Bytes that protection adds to an RTP packet: the tag.
    package var rtpOverhead: Int {
        switch self {
        case .aes128CmSha1_80: 10
        case .aeadAes128Gcm, .aeadAes256Gcm: 16
        }
    }

    /// Bytes that protection adds to an RTCP packet: the tag and the index word.
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

/// Reason for refusing to protect or accept a packet.
package enum SRTPError: Error, Equatable, Sendable {
    /// The authentication tag is wrong.
    case authentication
    /// The index was seen before, or is behind the replay window.
    case replay
    /// The bytes are no packet, or are shorter than header and tag.
    case malformed
    /// The keys have reached their limit: 2^48 RTP or 2^31 RTCP packets (RFC 3711 §9.2).
    case exhausted
    /// The session has reached its maximum number of incoming SSRCs.
    case streamLimit
    /// The engine lacks memory or the cipher.
    case unavailable
}
