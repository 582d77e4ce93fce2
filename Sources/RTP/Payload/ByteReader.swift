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
