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

/// Coded as its nanoseconds.
///
/// An instant of another host is decoded with the distance of the two hosts' clocks, in
/// nanoseconds, under `shiftKey`.
extension Instant: Codable {
    /// Key of the decoder's information that moves instants to another clock.
    package static let shiftKey = CodingUserInfoKey(rawValue: "instantShift")

    public init(from decoder: any Decoder) throws {
        let coded = try decoder.singleValueContainer().decode(Int64.self)
        let shift = decoder.userInfo.first { $0.key == Self.shiftKey }?.value as? Int64
        nanoseconds = coded &+ (shift ?? 0)
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(nanoseconds)
    }
}

/// Wall-clock time in NTP format: seconds since 1900 in 32.32 fixed point (RFC 3550 §4).
public struct NTPTime: RawRepresentable, Hashable, Sendable, BitwiseCopyable {
    public var rawValue: UInt64

    @inlinable
    public init(rawValue: UInt64) { self.rawValue = rawValue }

    /// Converts Unix time in nanoseconds, negative before 1970.
    @inlinable
    public init(unixNanoseconds: Int64) {
        let seconds = unixNanoseconds / 1_000_000_000
        let rest = unixNanoseconds % 1_000_000_000
        let fraction = (rest &<< 32) / 1_000_000_000
        let fixed = (seconds &+ 2_208_988_800) &<< 32
        rawValue = UInt64(bitPattern: fixed &+ fraction)
    }

    /// Middle 32 bits, as in LSR and DLSR (RFC 3550 §6.4.1).
    @inlinable
    public var compact: UInt32 { UInt32(truncatingIfNeeded: rawValue >> 16) }

    /// Returns the nanoseconds from `other` to this time, for times less than 68 years apart.
    @inlinable
    public func nanoseconds(since other: Self) -> Int64 {
        let difference = Int64(bitPattern: rawValue &- other.rawValue)
        let seconds = difference >> 32
        let fraction = difference & 0xffff_ffff
        return seconds &* 1_000_000_000 &+ (fraction &* 1_000_000_000) >> 32
    }
}
