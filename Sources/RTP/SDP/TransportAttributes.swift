/// ICE and DTLS attributes of a session or m-line.
///
/// The password is secret and must never be logged.
public struct TransportAttributes: Hashable, Sendable {
    /// `a=ice-ufrag` (RFC 8839 §5.4).
    public var fragment: String?
    /// `a=ice-pwd` (RFC 8839 §5.4).
    public var password: String?
    public var fingerprints: [FingerprintAttribute] = []
    public var setup: Setup?

    public init() {}
}

/// `a=fingerprint` (RFC 8122 §5).
public struct FingerprintAttribute: Hashable, Sendable {
    /// Name of the hash function in lower case, such as `sha-256`.
    public var hash: String
    public var digest: [UInt8]

    public init(hash: String, digest: [UInt8]) {
        self.hash = hash
        self.digest = digest
    }

    /// Parses `sha-256 12:AB:…`; returns `nil` if the form or the digest's length is wrong.
    init?(_ value: Substring) {
        let fields = value.fields()
        guard fields.count == 2, fields[0].isToken else { return nil }
        hash = fields[0].lowercased()
        digest = []
        for pair in fields[1].utf8.split(
            separator: UInt8(ascii: ":"),
            omittingEmptySubsequences: false
        ) {
            guard let byte = Self.byte(pair) else { return nil }
            digest.append(byte)
        }
        let expected: Int? =
            switch hash {
            case "sha-256": 32
            case "sha-384": 48
            case "sha-512": 64
            default: nil
            }
        guard expected == nil || expected == digest.count else { return nil }
    }

    private static func byte(_ pair: Substring.UTF8View) -> UInt8? {
        guard pair.count == 2 else { return nil }
        var value: UInt8 = 0
        for character in pair {
            guard let digit = hexadecimalDigit(character) else { return nil }
            value = value << 4 | digit
        }
        return value
    }

    /// Digest as text: upper-case bytes separated by colons.
    public var digestText: String {
        let digits = Array("0123456789ABCDEF".utf8)
        var text: [UInt8] = []
        for byte in digest {
            if !text.isEmpty { text.append(UInt8(ascii: ":")) }
            text.append(digits[Int(byte >> 4)])
            text.append(digits[Int(byte & 15)])
        }
        return String(decoding: text, as: UTF8.self)
    }
}

/// `a=setup`: the side that opens the DTLS association (RFC 4145 §4, RFC 8842 §5).
public enum Setup: String, Hashable, Sendable {
    case active, passive, actpass, holdconn
}

/// Returns the value of a hexadecimal digit in either case.
func hexadecimalDigit(_ character: UInt8) -> UInt8? {
    switch character {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): character - UInt8(ascii: "0")
    case UInt8(ascii: "a")...UInt8(ascii: "f"): character - UInt8(ascii: "a") + 10
    case UInt8(ascii: "A")...UInt8(ascii: "F"): character - UInt8(ascii: "A") + 10
    default: nil
    }
}
