/// A forged RTCP block; an adversary chooses every field (RFC 3550, RFC 4585, RFC 5104).
package enum ForgedReport: UInt8, CaseIterable, Hashable, Sendable {
    case sender, receiver, arrivals, estimate, lost, pictureLoss, fullIntra
    case extended, description, goodbye, unknown

    /// Fields of this block that can be varied.
    package var fields: [WireField] {
        switch self {
        case .sender: [.ntp, .rtpTime, .packetCount, .octetCount] + Self.reception
        case .receiver: Self.reception
        case .arrivals:
            [.baseSequence, .statusCount, .referenceTime, .feedbackCount, .statusChunk]
                + [.arrivalDelta]
        case .estimate: [.bitrateExponent, .bitrateMantissa]
        case .lost: [.lostSequence, .lostMask]
        case .fullIntra: [.requestSequence]
        case .pictureLoss, .extended, .description, .goodbye, .unknown: []
        }
    }

    private static let reception: [WireField] = [
        .fractionLost, .cumulativeLost, .highestSequence, .jitter, .lastReport, .reportDelay,
    ]

    /// Encodes the block, from one SSRC about another.
    package func bytes(
        from sender: UInt32,
        about media: UInt32,
        _ values: inout FieldValues,
        using random: inout some RandomNumberGenerator
    ) -> [UInt8] {
        var body: [UInt8] = []
        for field in layout(media) {
            switch field {
            case .played(let name, let bytes):
                body += Wire.bytes(values.next(name, using: &random), bytes)
            case .fixed(let value, let bytes): body += Wire.bytes(value, bytes)
            case .rate: body += Self.rate(&values, using: &random)
            }
        }
        if self == .arrivals { body += statuses(of: body, &values, using: &random) }
        if self == .lost { body += Self.pairs(of: body, 30) }
        while body.count % 4 != 0 { body.append(0) }
        let words = UInt16(truncatingIfNeeded: body.count / 4 + 1)
        return [0x80 | count, type] + Wire.bytes(UInt64(words), 2)
            + Wire.bytes(UInt64(sender), 4) + body
    }

    private enum Part {
        case played(WireField, bytes: Int)
        case fixed(UInt64, bytes: Int)
        case rate
    }

    private func layout(_ media: UInt32) -> [Part] {
        let about = Part.fixed(UInt64(media), bytes: 4)
        switch self {
        case .sender:
            return [
                .played(.ntp, bytes: 8), .played(.rtpTime, bytes: 4),
                .played(.packetCount, bytes: 4), .played(.octetCount, bytes: 4), about,
            ] + Self.receptionLayout
        case .receiver: return [about] + Self.receptionLayout
        case .arrivals:
            return [
                about, .played(.baseSequence, bytes: 2), .played(.statusCount, bytes: 2),
                .played(.referenceTime, bytes: 3), .played(.feedbackCount, bytes: 1),
            ]
        case .estimate:
            return [.fixed(0, bytes: 4), .fixed(0x5245_4d42, bytes: 4), .rate, about]
        case .lost: return [about, .played(.lostSequence, bytes: 2), .played(.lostMask, bytes: 2)]
        case .pictureLoss: return [about]
        case .fullIntra:
            return [
                .fixed(0, bytes: 4), about, .played(.requestSequence, bytes: 1),
                .fixed(0, bytes: 3),
            ]
        case .extended: return [.fixed(0x0400_0002, bytes: 4), .fixed(.max, bytes: 8)]
        case .description: return [.fixed(0x0104_6e61_6d65_0000, bytes: 8)]
        case .goodbye: return [about]
        case .unknown: return [.fixed(.max, bytes: 8)]
        }
    }

    private static let receptionLayout: [Part] = reception.map {
        .played($0, bytes: $0.bits / 8)
    }

    private var type: UInt8 {
        switch self {
        case .sender: 200
        case .receiver: 201
        case .description: 202
        case .goodbye: 203
        case .arrivals, .lost: 205
        case .pictureLoss, .estimate, .fullIntra: 206
        case .extended: 207
        case .unknown: 213
        }
    }

    private var count: UInt8 {
        switch self {
        case .sender, .receiver, .lost, .pictureLoss, .description: 1
        case .goodbye: 2
        case .fullIntra: 4
        case .arrivals, .estimate: 15
        case .extended, .unknown: 0
        }
    }

    private static func rate(
        _ values: inout FieldValues,
        using random: inout some RandomNumberGenerator
    ) -> [UInt8] {
        let exponent = values.next(.bitrateExponent, using: &random) & 0x3f
        let mantissa = values.next(.bitrateMantissa, using: &random) & 0x3ffff
        return Wire.bytes(1 << 24 | exponent << 18 | mantissa, 4)
    }

    /// Encodes chunks and arrivals for as many statuses as the header claims.
    private func statuses(
        of header: [UInt8],
        _ values: inout FieldValues,
        using random: inout some RandomNumberGenerator
    ) -> [UInt8] {
        let claimed = min(Int(header[6]) << 8 | Int(header[7]), 400)
        let chunk = values.next(.statusChunk, using: &random)
        // By default one run of packets that arrived 250 µs apart.
        guard chunk == 0 else {
            return Wire.bytes(chunk, 2) + [UInt8](repeating: 0x55, count: 2 * claimed)
        }
        var bytes = Wire.bytes(UInt64(0x4000 | claimed), 2)
        for _ in 0..<claimed {
            bytes += Wire.bytes(values.next(.arrivalDelta, using: &random), 2)
        }
        return bytes
    }

    /// Encodes pairs of a lost packet and the 16 after it, backwards from the first one.
    private static func pairs(of body: [UInt8], _ count: Int) -> [UInt8] {
        let first = UInt64(body[4]) << 8 | UInt64(body[5])
        let mask = UInt64(body[6]) << 8 | UInt64(body[7])
        return (1...count).flatMap { place in
            Wire.bytes(first &- UInt64(17 * place), 2) + Wire.bytes(mask, 2)
        }
    }
}
