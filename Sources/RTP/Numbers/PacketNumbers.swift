/// 16-bit RTP sequence number (RFC 3550 §5.1).
///
/// It wraps, so it is ordered by distance and has no `<`.
public struct SequenceNumber: RawRepresentable, Hashable, Sendable, BitwiseCopyable {
    public var rawValue: UInt16

    @inlinable
    public init(rawValue: UInt16) { self.rawValue = rawValue }

    /// Returns the signed distance from `other` the shorter way around; negative means older.
    @inlinable
    public func distance(from other: Self) -> Int {
        Int(Int16(bitPattern: rawValue &- other.rawValue))
    }

    /// Returns the number `steps` later, with wraparound.
    @inlinable
    public func advanced(by steps: Int) -> Self {
        Self(rawValue: rawValue &+ UInt16(truncatingIfNeeded: steps))
    }
}

/// Synchronization source identifier (RFC 3550 §3).
public struct SSRC: RawRepresentable, Hashable, Sendable, BitwiseCopyable, Codable {
    public var rawValue: UInt32

    @inlinable
    public init(rawValue: UInt32) { self.rawValue = rawValue }
}

/// RTP payload type, 0 to 127 (RFC 3550 §5.1).
public struct PayloadType: RawRepresentable, Hashable, Sendable, BitwiseCopyable {
    public var rawValue: UInt8

    @inlinable
    public init(rawValue: UInt8) { self.rawValue = rawValue & 0x7f }
}
