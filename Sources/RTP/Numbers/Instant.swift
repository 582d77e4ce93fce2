/// Point in time on the caller's monotonic clock, in nanoseconds from an arbitrary origin.
///
/// It has eight bytes; `ContinuousClock.Instant` and `Duration` have sixteen and are slower.
public struct Instant: Hashable, Comparable, Sendable, BitwiseCopyable {
    public var nanoseconds: Int64

    @inlinable
    public init(nanoseconds: Int64) { self.nanoseconds = nanoseconds }

    @inlinable
    public static func < (left: Self, right: Self) -> Bool { left.nanoseconds < right.nanoseconds }

    /// Returns the instant `milliseconds` later, or earlier if negative.
    @inlinable
    public func advanced(milliseconds: Int64) -> Self {
        Self(nanoseconds: nanoseconds &+ milliseconds &* 1_000_000)
    }

    @inlinable
    public func advanced(nanoseconds step: Int64) -> Self {
        Self(nanoseconds: nanoseconds &+ step)
    }

    /// Returns the nanoseconds from `other` to this instant; negative if `other` is later.
    @inlinable
    public func nanoseconds(since other: Self) -> Int64 { nanoseconds &- other.nanoseconds }

    @inlinable
    public func milliseconds(since other: Self) -> Int64 {
        nanoseconds(since: other) / 1_000_000
    }
}
