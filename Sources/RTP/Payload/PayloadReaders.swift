/// Byte reader that never reads past the end.
///
/// Past the end it returns zeros and sets `isExhausted`, so a parser checks once, when it is done.
struct ByteReader: ~Escapable {
    private let bytes: Span<UInt8>
    private(set) var position: Int
    private(set) var isExhausted = false

    @_lifetime(copy bytes)
    init(_ bytes: Span<UInt8>, at position: Int = 0) {
        self.bytes = bytes
        self.position = position
    }

    mutating func byte() -> UInt8 {
        guard position < bytes.count else {
            isExhausted = true
            return 0
        }
        defer { position += 1 }
        return bytes[position]
    }

    mutating func u16() -> UInt16 {
        let high = UInt16(byte())
        return high << 8 | UInt16(byte())
    }

    /// Next byte, without consuming it; 0 at the end.
    var peek: UInt8 { position < bytes.count ? bytes[position] : 0 }

    mutating func skip(_ count: Int) {
        guard count <= bytes.count - position else {
            isExhausted = true
            return
        }
        position += count
    }
}

/// Bit reader, most significant bit first, that never reads past the end.
///
/// Past the end it returns zeros and sets `isExhausted`, so a parser checks once, when it is done.
struct BitReader: ~Escapable {
    private let bytes: Span<UInt8>
    /// Whether to skip emulation prevention bytes: 00 00 03 stands for 00 00 (ITU-T H.264 §7.4.1).
    private let skipsEmulationPrevention: Bool
    private var byteOffset = 0
    private var bitOffset = 0
    private var zeros = 0
    private(set) var isExhausted = false

    @_lifetime(copy bytes)
    init(_ bytes: Span<UInt8>, skipsEmulationPrevention: Bool = false) {
        self.bytes = bytes
        self.skipsEmulationPrevention = skipsEmulationPrevention
    }

    mutating func bit() -> Bool {
        if skipsEmulationPrevention, bitOffset == 0, zeros >= 2, byteOffset < bytes.count,
            bytes[byteOffset] == 3
        {
            byteOffset += 1
            zeros = 0
        }
        guard byteOffset < bytes.count else {
            isExhausted = true
            return false
        }
        let byte = bytes[byteOffset]
        let bit = byte >> UInt8(7 - bitOffset) & 1
        bitOffset += 1
        if bitOffset == 8 {
            bitOffset = 0
            byteOffset += 1
            zeros = byte == 0 ? zeros + 1 : 0
        }
        return bit != 0
    }

    /// Reads `count` bits, at most 32.
    mutating func bits(_ count: Int) -> UInt32 {
        var value: UInt32 = 0
        for _ in 0..<count { value = value << 1 | (bit() ? 1 : 0) }
        return value
    }

    /// Reads an unsigned Exp-Golomb number, `ue(v)` (ITU-T H.264 §9.1).
    ///
    /// Numbers that are too large set `isExhausted`.
    mutating func exponentialGolomb() -> UInt32 {
        var zeros = 0
        while !bit() {
            zeros += 1
            guard zeros < 32, !isExhausted else {
                isExhausted = true
                return 0
            }
        }
        return (1 << UInt32(zeros)) - 1 + bits(zeros)
    }

    /// Reads a signed Exp-Golomb number, `se(v)` (ITU-T H.264 §9.1.1).
    mutating func signedExponentialGolomb() -> Int32 {
        let code = Int64(exponentialGolomb())
        return Int32(truncatingIfNeeded: code & 1 == 0 ? -(code / 2) : (code + 1) / 2)
    }

    /// Reads a number below `limit`, `ns(n)` (AV1 specification §4.10.7).
    mutating func nonSymmetric(below limit: Int) -> Int {
        var width = 0
        while limit >> width > 0 { width += 1 }
        guard width > 0 else { return 0 }
        let shorter = (1 << width) - limit
        let value = Int(bits(width - 1))
        guard value >= shorter else { return value }
        return (value << 1 | Int(bits(1))) - shorter
    }
}
