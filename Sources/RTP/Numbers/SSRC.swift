/// Synchronization source identifier (RFC 3550 §3).
public struct SSRC: RawRepresentable, Hashable, Sendable, BitwiseCopyable {
    public var rawValue: UInt32

    @inlinable
    public init(rawValue: UInt32) { self.rawValue = rawValue }
}
