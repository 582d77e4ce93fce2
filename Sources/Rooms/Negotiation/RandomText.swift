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
