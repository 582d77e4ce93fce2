/// CRC-32 of ISO 3309, as in STUN's FINGERPRINT (RFC 8489 §14.7).
enum Checksum {
    static func crc32(_ bytes: Span<UInt8>) -> UInt32 {
        let table = Self.table.span
        var crc: UInt32 = 0xffff_ffff
        for index in bytes.indices {
            crc = table[Int((crc ^ UInt32(bytes[index])) & 0xff)] ^ crc >> 8
        }
        return ~crc
    }

    private static let table: [UInt32] = (0..<256).map { index in
        (0..<8).reduce(UInt32(index)) { crc, _ in
            crc & 1 == 0 ? crc >> 1 : crc >> 1 ^ 0xedb8_8320
        }
    }
}
