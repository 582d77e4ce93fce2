/// Big-endian access to spans (RFC 791 appendix B).
///
/// Callers check lengths once, when they create a view; the shifts compile to one load.
extension Span<UInt8> {
    @inlinable
    package func u16(at offset: Int) -> UInt16 {
        UInt16(self[offset]) << 8 | UInt16(self[offset + 1])
    }

    @inlinable
    package func u24(at offset: Int) -> UInt32 {
        UInt32(self[offset]) << 16 | UInt32(u16(at: offset + 1))
    }

    @inlinable
    package func u32(at offset: Int) -> UInt32 {
        UInt32(u16(at: offset)) << 16 | UInt32(u16(at: offset + 2))
    }

    @inlinable
    package func u64(at offset: Int) -> UInt64 {
        UInt64(u32(at: offset)) << 32 | UInt64(u32(at: offset + 4))
    }
}

extension MutableSpan<UInt8> {
    @inlinable
    package mutating func put(_ value: UInt16, at offset: Int) {
        self[offset] = UInt8(truncatingIfNeeded: value >> 8)
        self[offset + 1] = UInt8(truncatingIfNeeded: value)
    }

    @inlinable
    package mutating func put(_ value: UInt32, at offset: Int) {
        put(UInt16(truncatingIfNeeded: value >> 16), at: offset)
        put(UInt16(truncatingIfNeeded: value), at: offset + 2)
    }
}

extension OutputSpan<UInt8> {
    @inlinable
    package mutating func append(bigEndian value: UInt16) {
        append(UInt8(truncatingIfNeeded: value >> 8))
        append(UInt8(truncatingIfNeeded: value))
    }

    @inlinable
    package mutating func append(bigEndian value: UInt32) {
        append(bigEndian: UInt16(truncatingIfNeeded: value >> 16))
        append(bigEndian: UInt16(truncatingIfNeeded: value))
    }

    @inlinable
    package mutating func append(bigEndian value: UInt64) {
        append(bigEndian: UInt32(truncatingIfNeeded: value >> 32))
        append(bigEndian: UInt32(truncatingIfNeeded: value))
    }

    /// Appends all of `source`, which must fit.
    @inlinable
    package mutating func append(copying source: Span<UInt8>) {
        for index in source.indices { append(source[index]) }
    }
}
