/// Decodes hexadecimal digits; spaces and line breaks are ignored.
func hex(_ text: String) -> [UInt8] {
    let digits = text.compactMap(\.hexDigitValue)
    precondition(digits.count.isMultiple(of: 2), "half a byte")
    return stride(from: 0, to: digits.count, by: 2).map { place in
        let byte: Int = digits[place] << 4 | digits[place + 1]
        return UInt8(byte)
    }
}

/// Returns the bytes that `body` writes into a buffer of `capacity` bytes.
func encoded(
    capacity: Int = 2048,
    _ body: (inout OutputSpan<UInt8>) -> Void
) -> [UInt8] {
    [UInt8](capacity: capacity) { output in body(&output) }
}

/// Seeded, reproducible random numbers (SplitMix64).
struct SeededGenerator: RandomNumberGenerator {
    private var state: UInt64

    init(seed: UInt64) { state = seed }

    mutating func next() -> UInt64 {
        state &+= 0x9e37_79b9_7f4a_7c15
        var mixed = state
        mixed = (mixed ^ mixed >> 30) &* 0xbf58_476d_1ce4_e5b9
        mixed = (mixed ^ mixed >> 27) &* 0x94d0_49bb_1331_11eb
        return mixed ^ mixed >> 31
    }
}

/// Bit writer, most significant bit first.
struct BitWriter {
    private(set) var bytes: [UInt8] = []
    private var count = 0

    mutating func put(_ value: Int, bits: Int) {
        for shift in stride(from: bits - 1, through: 0, by: -1) {
            if count % 8 == 0 { bytes.append(0) }
            bytes[count / 8] |= UInt8(value >> shift & 1) << UInt8(7 - count % 8)
            count += 1
        }
    }

    /// Writes `ue(v)` (ITU-T H.264 §9.1).
    mutating func putExponentialGolomb(_ value: Int) {
        let width = Int.bitWidth - (value + 1).leadingZeroBitCount
        put(value + 1, bits: 2 * width - 1)
    }
}
