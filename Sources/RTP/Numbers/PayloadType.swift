/// RTP payload type, 0 to 127 (RFC 3550 §5.1).
public struct PayloadType: RawRepresentable, Hashable, Sendable, BitwiseCopyable {
    public var rawValue: UInt8

    @inlinable
    public init(rawValue: UInt8) { self.rawValue = rawValue & 0x7f }
}
