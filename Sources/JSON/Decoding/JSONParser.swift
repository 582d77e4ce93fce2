/// Syntax error in a JSON text, with its byte offset.
public struct JSONSyntaxError: Error, Hashable, Sendable {
    public var offset: Int
    public var cause: String
}

extension JSON {
    /// Deepest nesting of arrays and objects.
    public static let depthLimit = 64

    /// Parses exactly one JSON text (RFC 8259) with nothing after it.
    ///
    /// Stricter than Foundation where leniency would hide a mistake or cost memory: no byte order
    /// mark, no duplicate key in an object, no lone surrogate, no number that a `Double` cannot
    /// hold, and no more than `depthLimit` levels.
    ///
    /// - Throws: `JSONSyntaxError` with the offset of the first invalid byte.
    public init(parsing bytes: [UInt8]) throws(JSONSyntaxError) {
        var parser = JSONParser(bytes: bytes)
        self = try parser.text()
    }
}

/// Recursive-descent parser of JSON and JSON5; the depth limit bounds its stack.
struct JSONParser {
    let bytes: [UInt8]
    let isJSON5: Bool
    var offset = 0
    private var depth = 0

    init(bytes: [UInt8], isJSON5: Bool = false) {
        self.bytes = bytes
        self.isJSON5 = isJSON5
    }

    mutating func text() throws(JSONSyntaxError) -> JSON {
        let value = try value()
        try skipSpace()
        guard offset == bytes.count else { throw failure("more than one value") }
        return value
    }

    var next: UInt8? { offset < bytes.count ? bytes[offset] : nil }

    var nextIsDigit: Bool {
        next.map { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) } ?? false
    }

    func failure(_ cause: String) -> JSONSyntaxError {
        JSONSyntaxError(offset: offset, cause: cause)
    }

    private mutating func skipSpace() throws(JSONSyntaxError) {
        if isJSON5 { return try skipJSON5Space() }
        while let byte = next, byte == 0x20 || byte == 0x09 || byte == 0x0a || byte == 0x0d {
            offset += 1
        }
    }

    mutating func take(_ byte: UInt8, or cause: String) throws(JSONSyntaxError) {
        guard next == byte else { throw failure(cause) }
        offset += 1
    }

    private mutating func value() throws(JSONSyntaxError) -> JSON {
        try skipSpace()
        switch next {
        case UInt8(ascii: "{"): return try object()
        case UInt8(ascii: "["): return try array()
        case .some(let quote) where isQuote(quote): return .string(try string(in: quote))
        case UInt8(ascii: "t"): return try word("true", .bool(true))
        case UInt8(ascii: "f"): return try word("false", .bool(false))
        case UInt8(ascii: "n"): return try word("null", .null)
        case .some(UInt8(ascii: "0")...UInt8(ascii: "9")), UInt8(ascii: "-"): return try number()
        case UInt8(ascii: "+") where isJSON5, UInt8(ascii: ".") where isJSON5: return try number()
        case nil: throw failure("the text ends early")
        default: throw failure("no value starts so")
        }
    }

    private func isQuote(_ byte: UInt8) -> Bool {
        byte == UInt8(ascii: "\"") || isJSON5 && byte == UInt8(ascii: "'")
    }

    private mutating func word(_ word: String, _ value: JSON) throws(JSONSyntaxError) -> JSON {
        for byte in word.utf8 { try take(byte, or: "no value starts so") }
        return value
    }

    private mutating func enter() throws(JSONSyntaxError) {
        guard depth < JSON.depthLimit else { throw failure("nested too deep") }
        depth += 1
        offset += 1
        try skipSpace()
    }

    /// Takes a comma and returns whether an element follows it; JSON5 allows a trailing comma.
    private mutating func takeComma(before end: UInt8) throws(JSONSyntaxError) -> Bool {
        guard next == UInt8(ascii: ",") else { return false }
        offset += 1
        try skipSpace()
        return !isJSON5 || next != end
    }

    private mutating func array() throws(JSONSyntaxError) -> JSON {
        try enter()
        var elements: [JSON] = []
        if next != UInt8(ascii: "]") {
            repeat {
                elements.append(try value())
                try skipSpace()
            } while try takeComma(before: UInt8(ascii: "]"))
        }
        try take(UInt8(ascii: "]"), or: "an array goes on with , or ]")
        depth -= 1
        return .array(elements)
    }

    private mutating func object() throws(JSONSyntaxError) -> JSON {
        try enter()
        var members: [String: JSON] = [:]
        if next != UInt8(ascii: "}") {
            repeat {
                try member(into: &members)
                try skipSpace()
            } while try takeComma(before: UInt8(ascii: "}"))
        }
        try take(UInt8(ascii: "}"), or: "an object goes on with , or }")
        depth -= 1
        return .object(members)
    }

    private mutating func member(into members: inout [String: JSON]) throws(JSONSyntaxError) {
        let start = offset
        let key = try key()
        try skipSpace()
        try take(UInt8(ascii: ":"), or: "a key is followed by :")
        let value = try value()
        guard members.updateValue(value, forKey: key) == nil else {
            throw JSONSyntaxError(offset: start, cause: "a key stands twice in one object")
        }
    }

    private mutating func key() throws(JSONSyntaxError) -> String {
        if let quote = next, isQuote(quote) { return try string(in: quote) }
        guard isJSON5 else { throw failure("a key is a string") }
        return try name()
    }

    private mutating func number() throws(JSONSyntaxError) -> JSON {
        let start = offset
        var whole = true
        if next == UInt8(ascii: "-") || isJSON5 && next == UInt8(ascii: "+") { offset += 1 }
        if isJSON5, let number = try hexadecimal(from: start) { return number }
        // In JSON5 digits may be missing on one side of the decimal point (§6).
        let startsWithPoint = isJSON5 && next == UInt8(ascii: ".")
        if next == UInt8(ascii: "0") {
            offset += 1
        } else if !startsWithPoint {
            try digits()
        }
        if next == UInt8(ascii: ".") {
            whole = false
            offset += 1
            if !isJSON5 || startsWithPoint || nextIsDigit { try digits() }
        }
        if next == UInt8(ascii: "e") || next == UInt8(ascii: "E") {
            whole = false
            offset += 1
            if next == UInt8(ascii: "+") || next == UInt8(ascii: "-") { offset += 1 }
            try digits()
        }
        let literal = String(decoding: bytes[start..<offset], as: UTF8.self)
        if whole, let integer = Int64(literal) { return .integer(integer) }
        guard let double = Double(literal), double.isFinite else {
            throw JSONSyntaxError(offset: start, cause: "a number is out of range")
        }
        return .number(double)
    }

    private mutating func digits() throws(JSONSyntaxError) {
        let start = offset
        while nextIsDigit { offset += 1 }
        guard offset > start else { throw failure("a digit is missing") }
    }

    private mutating func string(in quote: UInt8) throws(JSONSyntaxError) -> String {
        offset += 1
        let start = offset
        while let byte = next, byte != quote, byte != UInt8(ascii: "\\") {
            try takeCharacter(byte)
        }
        if next == quote {
            defer { offset += 1 }
            return try text(of: bytes[start..<offset], at: start)
        }
        var unescaped = Array(bytes[start..<offset])
        while let byte = next, byte != quote {
            try takeCharacter(byte)
            if byte == UInt8(ascii: "\\") {
                try escape(into: &unescaped)
            } else {
                unescaped.append(byte)
            }
        }
        try take(quote, or: "a string does not end")
        return try text(of: unescaped[...], at: start)
    }

    /// Takes one character; JSON5 allows raw control characters except line ends (§5).
    private mutating func takeCharacter(_ byte: UInt8) throws(JSONSyntaxError) {
        let endsLine = byte == UInt8(ascii: "\n") || byte == UInt8(ascii: "\r")
        guard byte >= 0x20 || isJSON5 && !endsLine else {
            throw failure("a control character is not escaped")
        }
        offset += 1
    }

    private func text(
        of bytes: ArraySlice<UInt8>,
        at start: Int
    ) throws(JSONSyntaxError) -> String {
        guard let text = String(validatingUTF8: bytes.span) else {
            throw JSONSyntaxError(offset: start, cause: "a string is not UTF-8")
        }
        return text
    }

    private mutating func escape(into text: inout [UInt8]) throws(JSONSyntaxError) {
        guard let letter = next else { throw failure("a string does not end") }
        offset += 1
        switch letter {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): text.append(letter)
        case UInt8(ascii: "b"): text.append(0x08)
        case UInt8(ascii: "f"): text.append(0x0c)
        case UInt8(ascii: "n"): text.append(0x0a)
        case UInt8(ascii: "r"): text.append(0x0d)
        case UInt8(ascii: "t"): text.append(0x09)
        case UInt8(ascii: "u"): text.append(contentsOf: try unicodeEscape().utf8)
        default:
            if isJSON5, try escapeJSON5(letter, into: &text) { return }
            offset -= 1
            throw failure("no such escape")
        }
    }

    private mutating func unicodeEscape() throws(JSONSyntaxError) -> String {
        let start = offset
        let high = try hexDigits(4, after: "\\u")
        if let scalar = Unicode.Scalar(high) { return String(Character(scalar)) }
        let lone = JSONSyntaxError(offset: start, cause: "a surrogate stands alone")
        guard high < 0xdc00, next == UInt8(ascii: "\\") else { throw lone }
        offset += 1
        guard next == UInt8(ascii: "u") else { throw lone }
        offset += 1
        let low = try hexDigits(4, after: "\\u")
        guard (0xdc00...0xdfff).contains(low),
            let scalar = Unicode.Scalar(0x10000 + (high - 0xd800) << 10 + (low - 0xdc00))
        else { throw lone }
        return String(Character(scalar))
    }

    mutating func hexDigits(_ count: Int, after: String) throws(JSONSyntaxError) -> UInt32 {
        var value: UInt32 = 0
        for _ in 0..<count {
            guard let byte = next, let digit = Character(Unicode.Scalar(byte)).hexDigitValue else {
                throw failure("\(count) hexadecimal digits follow \(after)")
            }
            value = value << 4 | UInt32(digit)
            offset += 1
        }
        return value
    }
}
