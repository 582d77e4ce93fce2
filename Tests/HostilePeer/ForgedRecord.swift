/// A DTLS record without valid keys, as it may arrive at any time (RFC 6347 §4.1).
package enum ForgedRecord: UInt8, CaseIterable, Sendable {
    case alert, hello, fragment, data, cipherChange, garbage

    package static let fields: [WireField] = [
        .recordType, .recordEpoch, .recordSequence, .recordLength,
    ]

    package func bytes(
        _ values: inout FieldValues,
        using random: inout some RandomNumberGenerator
    ) -> [UInt8] {
        let epoch = values.next(.recordEpoch, using: &random)
        let sequence = values.next(.recordSequence, using: &random)
        let claimed = values.next(.recordLength, using: &random)
        let body = body(claimed)
        let played = values.next(.recordType, using: &random)
        let type = self == .garbage ? UInt8(20 + played % 44) : type
        // Garbage may claim any length.
        let length = self == .garbage ? claimed : UInt64(body.count)
        return [type, 0xfe, 0xfd] + Wire.bytes(epoch, 2) + Wire.bytes(sequence, 6)
            + Wire.bytes(length, 2) + body
    }

    private var type: UInt8 {
        switch self {
        case .cipherChange: 20
        case .alert: 21
        case .hello, .fragment, .garbage: 22
        case .data: 23
        }
    }

    private func body(_ claimed: UInt64) -> [UInt8] {
        switch self {
        case .cipherChange: [1]
        case .alert: [2, 40]
        case .hello: handshake(type: 1, length: 100, offset: 0, bytes: 100)
        case .fragment: handshake(type: 11, length: claimed << 8 | 0xff, offset: claimed, bytes: 40)
        case .data: [UInt8](repeating: 0x41, count: 64)
        case .garbage: [UInt8](repeating: 0x16, count: 80)
        }
    }

    private func handshake(type: UInt8, length: UInt64, offset: UInt64, bytes: Int) -> [UInt8] {
        [type] + Wire.bytes(length, 3) + [0, 0] + Wire.bytes(offset, 3)
            + Wire.bytes(UInt64(bytes), 3) + [UInt8](repeating: 0xfe, count: bytes)
    }
}
