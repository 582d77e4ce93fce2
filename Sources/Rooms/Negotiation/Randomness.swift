import RTP

/// Random number source: the system's in the daemon, a seeded one in tests.
package struct RandomSource: RandomNumberGenerator, Sendable {
    private let draw: @Sendable () -> UInt64

    package init(_ draw: @escaping @Sendable () -> UInt64) { self.draw = draw }

    package mutating func next() -> UInt64 { draw() }

    /// Cryptographically secure generator of the system.
    package static let system = Self {
        var generator = SystemRandomNumberGenerator()
        return generator.next()
    }
}

/// Random text for credentials and ids.
enum RandomText {
    private static let characters = Array(
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8
    )

    /// Returns `count` ice-chars of 6 random bits each (RFC 8445 §5.3).
    static func ice(count: Int, random: inout some RandomNumberGenerator) -> String {
        var text: [UInt8] = []
        for _ in 0..<count { text.append(characters[Int(random.next() & 63)]) }
        return String(decoding: text, as: UTF8.self)
    }

    /// Returns twelve random letters and digits, without characters that look alike.
    static func word(_ random: inout some RandomNumberGenerator) -> String {
        let letters = Array("abcdefghijkmnpqrstuvwxyz23456789")
        var word = ""
        for _ in 0..<12 { word.append(letters[Int.random(in: letters.indices, using: &random)]) }
        return word
    }
}

/// Generator of SSRCs that visits all 32-bit numbers before it repeats one.
///
/// An SSRC reused for another stream would repeat packet indexes under one SRTP key, which AES-GCM
/// must never do (RFC 7714 §8.1).
struct SSRCGenerator: Sendable, Codable {
    private var value: UInt32

    init(random: inout some RandomNumberGenerator) {
        value = UInt32(truncatingIfNeeded: random.next())
    }

    /// Returns the next SSRC that is not 0 and that the peer does not use.
    mutating func next(avoiding taken: Set<SSRC>) -> SSRC {
        repeat {
            // An odd step visits all 2^32 numbers before it repeats one.
            value &+= 0x9e37_79b1
        } while value == 0 || taken.contains(SSRC(rawValue: value))
        return SSRC(rawValue: value)
    }
}
