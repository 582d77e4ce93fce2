/// A token of Swift source that is neither space nor comment.
struct SwiftToken {
    enum Kind { case word, number, string, symbol }

    var kind: Kind
    var text: String
    var line: Int
    /// Whether space, a comment or the start of the file precedes it.
    var followsSpace: Bool
}

/// Tokenizer of Swift source; drops comments, and empties string literals.
///
/// Expressions inside string literals are code, so their tokens are kept.
struct SwiftTokenizer {
    private let text: [UInt8]
    private var position = 0
    private var line = 1
    private var followsSpace = true
    private(set) var tokens: [SwiftToken] = []

    static func tokens(of text: String) -> [SwiftToken] {
        var tokenizer = SwiftTokenizer(text: Array(text.utf8))
        tokenizer.readCode(untilParenthesis: false)
        return tokenizer.tokens
    }

    private init(text: [UInt8]) { self.text = text }

    private func starts(with word: String) -> Bool {
        text[position...].starts(with: word.utf8)
    }

    private mutating func advance(_ count: Int = 1) {
        for _ in 0..<count where position < text.count {
            if text[position] == UInt8(ascii: "\n") { line += 1 }
            position += 1
        }
    }

    private mutating func take(_ kind: SwiftToken.Kind, while belongs: (UInt8) -> Bool) {
        let start = position
        while position < text.count, belongs(text[position]) { position += 1 }
        add(kind, String(decoding: text[start..<position], as: UTF8.self))
    }

    private mutating func add(_ kind: SwiftToken.Kind, _ text: String) {
        tokens.append(SwiftToken(kind: kind, text: text, line: line, followsSpace: followsSpace))
        followsSpace = false
    }

    private mutating func readCode(untilParenthesis: Bool) {
        var depth = 0
        while position < text.count {
            let byte = text[position]
            if untilParenthesis, depth == 0, byte == UInt8(ascii: ")") { return }
            if byte == UInt8(ascii: "(") { depth += 1 }
            if byte == UInt8(ascii: ")") { depth -= 1 }
            readToken(byte)
        }
    }

    private mutating func readToken(_ byte: UInt8) {
        if byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\n") {
            advance()
            followsSpace = true
        } else if byte == UInt8(ascii: "/"), starts(with: "//") {
            skipLine()
        } else if byte == UInt8(ascii: "/"), starts(with: "/*") {
            while position < text.count, !starts(with: "*/") { advance() }
            advance(2)
            followsSpace = true
        } else if byte == UInt8(ascii: "#") {
            // Both branches of a condition are read.
            if ["#if", "#else", "#endif"].contains(where: starts(with:)) {
                skipLine()
            } else if starts(with: "#\"") || starts(with: "##\"") {
                readString()
            } else {
                add(.symbol, "#")
                advance()
            }
        } else if byte == UInt8(ascii: "\"") {
            readString()
        } else if Self.isDigit(byte) {
            readNumber()
        } else if Self.isWord(byte) {
            take(.word, while: Self.isWord)
        } else if Self.isOperator(byte) {
            readOperator()
        } else {
            add(.symbol, String(decoding: [byte], as: UTF8.self))
            advance()
        }
    }

    private mutating func skipLine() {
        while position < text.count, text[position] != UInt8(ascii: "\n") { position += 1 }
        followsSpace = true
    }

    private mutating func readNumber() {
        let start = position
        while position < text.count {
            let isFraction =
                text[position] == UInt8(ascii: ".") && position + 1 < text.count
                && Self.isDigit(text[position + 1]) && tokens.last?.text != "."
            guard Self.isWord(text[position]) || isFraction else { break }
            position += 1
        }
        add(.number, String(decoding: text[start..<position], as: UTF8.self))
    }

    private mutating func readOperator() {
        // `!`, `?` and `&` attach to operands, so they are single tokens unless an operator begins
        // so.
        let start = position
        while position < text.count, Self.isOperator(text[position]) {
            if position > start, starts(with: "//") || starts(with: "/*") { break }
            position += 1
            if text[start] == UInt8(ascii: "?"), text[position] != UInt8(ascii: "?") { break }
            if text[start] == UInt8(ascii: "!"), text[position] != UInt8(ascii: "=") { break }
        }
        add(.symbol, String(decoding: text[start..<position], as: UTF8.self))
    }

    /// Reads a string literal: the tokens of its expressions, followed by one empty string.
    private mutating func readString() {
        let start = position
        while position < text.count, text[position] == UInt8(ascii: "#") { position += 1 }
        let hashes = position - start
        let isLong = starts(with: "\"\"\"")
        let quotes = isLong ? 3 : 1
        add(.string, "\"\"")
        advance(quotes)
        let hash = repeatElement(UInt8(ascii: "#"), count: hashes)
        let end = Array(repeatElement(UInt8(ascii: "\""), count: quotes)) + hash
        let escape = [UInt8(ascii: "\\")] + hash
        while position < text.count, !text[position...].starts(with: end) {
            guard text[position...].starts(with: escape) else {
                advance()
                continue
            }
            advance(escape.count)
            guard position < text.count, text[position] == UInt8(ascii: "(") else {
                advance()
                continue
            }
            add(.symbol, "(")
            advance()
            readCode(untilParenthesis: true)
            add(.symbol, ")")
            advance()
        }
        advance(end.count)
        followsSpace = false
    }

    private static func isDigit(_ byte: UInt8) -> Bool { (48...57).contains(byte) }

    private static func isWord(_ byte: UInt8) -> Bool {
        switch byte {
        case 48...57, 65...90, 97...122, UInt8(ascii: "_"), UInt8(ascii: "$"), UInt8(ascii: "`"):
            true
        default: byte >= 128
        }
    }

    private static func isOperator(_ byte: UInt8) -> Bool { "+-*/%<>=!&|^~?.".utf8.contains(byte) }
}

extension [SwiftToken] {
    /// Returns the index of the bracket that closes the one at `start`.
    func end(ofGroupAt start: Int) -> Int {
        var depth = 0
        for index in start..<count where self[index].kind == .symbol {
            if "([{".contains(self[index].text) { depth += 1 }
            if ")]}".contains(self[index].text) { depth -= 1 }
            if depth == 0 { return index }
        }
        return count
    }

    /// Returns the index of the bracket that opens the group closed at `end`.
    func start(ofGroupTo end: Int) -> Int {
        var depth = 0
        for index in stride(from: end, through: 0, by: -1) where self[index].kind == .symbol {
            if ")]}".contains(self[index].text) { depth += 1 }
            if "([{".contains(self[index].text) { depth -= 1 }
            if depth == 0 { return index }
        }
        return 0
    }
}
