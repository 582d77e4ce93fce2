/// Datagram on a WebRTC port, classified by its first byte (RFC 7983 §7).
public enum Datagram: ~Escapable {
    case stun(Span<UInt8>)
    case dtls(Span<UInt8>)
    case rtp(Span<UInt8>)
    case rtcp(Span<UInt8>)

    /// Classifies a datagram; returns `nil` for bytes of any other protocol.
    @inlinable
    @_lifetime(copy bytes)
    public init?(_ bytes: Span<UInt8>) {
        guard bytes.count >= 2 else { return nil }
        switch bytes[0] {
        case 0...3: self = .stun(bytes)
        case 20...63: self = .dtls(bytes)
        // RTCP packet types occupy the place of RTP payload types 64...95 (RFC 5761 §4).
        case 128...191 where (192...223).contains(bytes[1]): self = .rtcp(bytes)
        case 128...191: self = .rtp(bytes)
        default: return nil
        }
    }
}
