import RTP
import SFU

/// A connectivity check written by an adversary: valid or not, of any size and role.
package struct ForgedCheck: Sendable {
    /// Whether it is signed with the right password.
    package var isAuthentic = true
    package var hasFingerprint = true
    package var nominates = true
    package var isControlled = false
    /// An additional attribute, with the length of its value in bytes.
    package var extra: (type: UInt16, length: Int)?
    package var messageType: UInt16 = 0x0001

    package init() {}

    /// Encodes the message as the peer with these credentials would sign it.
    package func bytes(
        username: String,
        password: String,
        transaction: UInt64,
        _ values: inout FieldValues,
        using random: inout some RandomNumberGenerator
    ) -> [UInt8] {
        var attributes = Self.attribute(0x0006, Array(username.utf8))
        attributes += Self.attribute(0x0024, Wire.bytes(values.next(.priority, using: &random), 4))
        let breaker = Wire.bytes(values.next(.tieBreaker, using: &random), 8)
        attributes += Self.attribute(isControlled ? 0x8029 : 0x802a, breaker)
        if nominates { attributes += Self.attribute(0x0025, []) }
        if let extra {
            attributes += Self.attribute(extra.type, [UInt8](repeating: 0x20, count: extra.length))
        }
        let key = isAuthentic ? password : password + "x"
        let signed = message(transaction, attributes, following: 24)
        let tag = Digest.hmacSHA1(key: key.utf8.span, message: signed.span)
        attributes += Self.attribute(0x0008, tag.indices.map { tag[$0] })
        guard hasFingerprint else { return message(transaction, attributes, following: 0) }
        let covered = message(transaction, attributes, following: 8)
        return covered + Self.attribute(0x8028, Wire.bytes(UInt64(Self.fingerprint(covered)), 4))
    }

    /// Encodes header and attributes; the header's length also counts what follows.
    private func message(
        _ transaction: UInt64,
        _ attributes: [UInt8],
        following: Int
    ) -> [UInt8] {
        Wire.bytes(UInt64(messageType), 2)
            + Wire.bytes(UInt64(attributes.count + following), 2)
            + Wire.bytes(0x2112_a442, 4) + Wire.bytes(0x6576_696c, 4) + Wire.bytes(transaction, 8)
            + attributes
    }

    private static func attribute(_ type: UInt16, _ value: [UInt8]) -> [UInt8] {
        let padding = [UInt8](repeating: 0, count: (4 - value.count % 4) % 4)
        return Wire.bytes(UInt64(type), 2) + Wire.bytes(UInt64(value.count), 2) + value + padding
    }

    /// Returns the FINGERPRINT value (RFC 8489 §14.7).
    private static func fingerprint(_ bytes: [UInt8]) -> UInt32 {
        var crc: UInt32 = 0xffff_ffff
        for byte in bytes {
            crc ^= UInt32(byte)
            for _ in 0..<8 { crc = crc & 1 == 0 ? crc >> 1 : crc >> 1 ^ 0xedb8_8320 }
        }
        return ~crc ^ 0x5354_554e
    }
}
