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
