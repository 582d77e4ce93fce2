/// HMAC-SHA1 (RFC 2104, FIPS 180-4), slow and simple, to check STUN's integrity in tests.
enum SHA1 {
    static func hmac(_ message: [UInt8], key: [UInt8]) -> [UInt8] {
        precondition(key.count <= 64, "long keys are hashed first, which no test needs")
        let padded = key + [UInt8](repeating: 0, count: 64 - key.count)
        return digest(padded.map { $0 ^ 0x5c } + digest(padded.map { $0 ^ 0x36 } + message))
    }

    static func digest(_ message: [UInt8]) -> [UInt8] {
        var state: [UInt32] = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476, 0xc3d2_e1f0]
        var bytes = message + [0x80]
        while bytes.count % 64 != 56 { bytes.append(0) }
        for shift in stride(from: 56, through: 0, by: -8) {
            bytes.append(UInt8(truncatingIfNeeded: (message.count * 8) >> shift))
        }
        for start in stride(from: 0, to: bytes.count, by: 64) {
            compress(Array(bytes[start..<start + 64]), into: &state)
        }
        return state.flatMap { word in
            [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: word >> UInt32($0)) }
        }
    }

    private static func compress(_ block: [UInt8], into state: inout [UInt32]) {
        var words = stride(from: 0, to: 64, by: 4).map { at in
            (0..<4).reduce(UInt32(0)) { $0 << 8 | UInt32(block[at + $1]) }
        }
        for index in 16..<80 {
            let mixed = words[index - 3] ^ words[index - 8] ^ words[index - 14] ^ words[index - 16]
            words.append(rotate(mixed, 1))
        }
        var (a, b, c, d, e) = (state[0], state[1], state[2], state[3], state[4])
        for index in 0..<80 {
            let (choice, constant): (UInt32, UInt32)
            switch index / 20 {
            case 0: (choice, constant) = (b & c | ~b & d, 0x5a82_7999)
            case 1: (choice, constant) = (b ^ c ^ d, 0x6ed9_eba1)
            case 2: (choice, constant) = (b & c | b & d | c & d, 0x8f1b_bcdc)
            default: (choice, constant) = (b ^ c ^ d, 0xca62_c1d6)
            }
            let next = rotate(a, 5) &+ choice &+ e &+ constant &+ words[index]
            (a, b, c, d, e) = (next, a, rotate(b, 30), c, d)
        }
        for (index, value) in [a, b, c, d, e].enumerated() { state[index] &+= value }
    }

    private static func rotate(_ word: UInt32, _ count: UInt32) -> UInt32 {
        word << count | word >> (32 - count)
    }
}
