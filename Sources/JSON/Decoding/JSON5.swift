extension JSON {
    /// Parses exactly one JSON5 text (spec.json5.org, 1.0.0) with nothing after it.
    ///
    /// It is as strict as `init(parsing:)` about duplicate keys, lone surrogates, depth, and
    /// numbers that a `Double` cannot hold; so `Infinity` and `NaN` are refused.
    ///
    /// - Throws: `JSONSyntaxError` with the offset of the first invalid byte.
    package init(parsingJSON5 bytes: [UInt8]) throws(JSONSyntaxError) {
        var parser = JSONParser(bytes: bytes, isJSON5: true)
        self = try parser.text()
    }
}

extension JSONParser {
    /// Skips white space and comments (JSON5 §7 and §8).
    mutating func skipJSON5Space() throws(JSONSyntaxError) {
        while let (scalar, length) = try nextScalar() {
            if scalar == "/" {
                try skipComment()
            } else if scalar.isJSON5Space || scalar.endsJSON5Line {
                offset += length
            } else {
                return
            }
        }
    }

    private mutating func skipComment() throws(JSONSyntaxError) {
        let start = offset
        offset += 1
        switch next {
        case UInt8(ascii: "/"):
            while let (scalar, length) = try nextScalar(), !scalar.endsJSON5Line {
                offset += length
            }
        case UInt8(ascii: "*"):
            offset += 1
            while !bytes[offset...].starts(with: "*/".utf8) {
                guard next != nil else {
                    throw JSONSyntaxError(offset: start, cause: "a comment does not end")
                }
                offset += 1
            }
            offset += 2
        default:
            throw JSONSyntaxError(offset: start, cause: "a comment starts with // or /*")
        }
    }

    /// Returns the character at `offset` and its length in bytes, or `nil` at the end.
    private func nextScalar() throws(JSONSyntaxError) -> (Unicode.Scalar, length: Int)? {
        guard let byte = next else { return nil }
        guard byte >= 0x80 else { return (Unicode.Scalar(byte), 1) }
        var rest = bytes[offset...].prefix(4).makeIterator()
        var decoder = UTF8()
        guard case .scalarValue(let scalar) = decoder.decode(&rest) else {
            throw failure("the text is not UTF-8")
        }
        return (scalar, UTF8.width(scalar))
    }

    /// Reads a key without quotes: an ECMAScript identifier name (JSON5 §3).
    mutating func name() throws(JSONSyntaxError) -> String {
        var name = String.UnicodeScalarView()
        while let (scalar, length) = try nextScalar() {
            let start = offset
            let isEscaped = scalar == "\\"
            offset += length
            let part = isEscaped ? try escapedNamePart() : scalar
            guard name.isEmpty ? part.startsJSON5Name : part.continuesJSON5Name else {
                offset = start
                guard !isEscaped else { throw failure("no name has such a character") }
                break
            }
            name.append(part)
        }
        guard !name.isEmpty else { throw failure("a key is a string or a name") }
        return String(name)
    }

    private mutating func escapedNamePart() throws(JSONSyntaxError) -> Unicode.Scalar {
        try take(UInt8(ascii: "u"), or: "no such escape")
        let start = offset
        guard let part = Unicode.Scalar(try hexDigits(4, after: "\\u")) else {
            throw JSONSyntaxError(offset: start, cause: "a surrogate stands alone")
        }
        return part
    }

    /// Reads a hexadecimal number after its optional sign (JSON5 §6).
    mutating func hexadecimal(from start: Int) throws(JSONSyntaxError) -> JSON? {
        guard bytes[offset...].starts(with: "0x".utf8) || bytes[offset...].starts(with: "0X".utf8)
        else { return nil }
        offset += 2
        let first = offset
        while let byte = next, Character(Unicode.Scalar(byte)).isHexDigit { offset += 1 }
        guard offset > first else { throw failure("a digit is missing") }
        let sign = bytes[start] == UInt8(ascii: "-") ? "-" : ""
        let digits = String(decoding: bytes[first..<offset], as: UTF8.self)
        guard let integer = Int64(sign + digits, radix: 16) else {
            throw JSONSyntaxError(offset: start, cause: "a number is out of range")
        }
        return .integer(integer)
    }

    /// Reads an escape that only JSON5 has (§5.1): any character but digits 1 to 9 may be escaped.
    mutating func escapeJSON5(
        _ letter: UInt8,
        into text: inout [UInt8]
    ) throws(JSONSyntaxError) -> Bool {
        switch letter {
        case UInt8(ascii: "v"): text.append(0x0b)
        case UInt8(ascii: "0") where !nextIsDigit: text.append(0x00)
        case UInt8(ascii: "0")...UInt8(ascii: "9"): return false
        case UInt8(ascii: "x"):
            let code = UInt8(truncatingIfNeeded: try hexDigits(2, after: "\\x"))
            text.append(contentsOf: String(Character(Unicode.Scalar(code))).utf8)
        case UInt8(ascii: "\r"): if next == UInt8(ascii: "\n") { offset += 1 }
        case UInt8(ascii: "\n"): break
        default:
            offset -= 1
            guard let (scalar, length) = try nextScalar() else { return false }
            if !scalar.endsJSON5Line { text.append(contentsOf: bytes[offset..<(offset + length)]) }
            offset += length
        }
        return true
    }
}

extension Unicode.Scalar {
    fileprivate var isJSON5Space: Bool {
        switch self {
        case "\t", "\u{b}", "\u{c}", "\u{feff}": true
        default: properties.generalCategory == .spaceSeparator
        }
    }

    fileprivate var endsJSON5Line: Bool {
        self == "\n" || self == "\r" || self == "\u{2028}" || self == "\u{2029}"
    }

    fileprivate var startsJSON5Name: Bool {
        self == "$" || self == "_" || properties.isIDStart
    }

    fileprivate var continuesJSON5Name: Bool {
        startsJSON5Name || self == "\u{200c}" || self == "\u{200d}" || properties.isIDContinue
    }
}
