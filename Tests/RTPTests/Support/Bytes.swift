/// Returns the bytes that `body` writes into a buffer of `capacity` bytes.
func encoded(
    capacity: Int = 2048,
    _ body: (inout OutputSpan<UInt8>) -> Void
) -> [UInt8] {
    [UInt8](capacity: capacity) { output in body(&output) }
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
