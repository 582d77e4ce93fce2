/// Error in a value in the compact form, with its byte offset.
package struct CompactSyntaxError: Error, Hashable {
    package var offset: Int
    package var cause: String
}

extension JSON {
    /// Parses exactly one value in the compact form, as `compact(_:)` writes it.
    ///
    /// Byte strings become arrays of numbers. No more than `depthLimit` levels are read.
    ///
    /// - Throws: `CompactSyntaxError` with the offset at which the value is not in that form.
    package init(parsingCompact bytes: [UInt8]) throws(CompactSyntaxError) {
        var parser = CompactParser(bytes: bytes)
        self = try parser.value()
    }
}

/// Recursive-descent parser of the compact form; the depth limit bounds its stack.
private struct CompactParser {
    let bytes: [UInt8]
    private var offset = 0
    private var depth = 0
    /// Strings that a reference may stand for; `nil` for byte strings.
    private var strings: [String?] = []

    init(bytes: [UInt8]) { self.bytes = bytes }

    /// Reads the complete value.
    mutating func value() throws(CompactSyntaxError) -> JSON {
        guard try head() == (.tag, CompactForm.namespaceTag) else {
            throw failure("does not begin with a namespace of strings")
        }
        let value = try item()
        guard offset == bytes.count else { throw failure("more than one value") }
        return value
    }

    private func failure(_ cause: String) -> CompactSyntaxError {
        CompactSyntaxError(offset: offset, cause: cause)
    }

    private mutating func byte() throws(CompactSyntaxError) -> UInt8 {
        guard offset < bytes.count else { throw failure("ends early") }
        defer { offset += 1 }
        return bytes[offset]
    }

    /// Reads `width` bytes as a number, the most significant one first.
    private mutating func number(_ width: Int) throws(CompactSyntaxError) -> UInt64 {
        var value: UInt64 = 0
        for _ in 0..<width { value = value << 8 | UInt64(try byte()) }
        return value
    }

    private mutating func head() throws(CompactSyntaxError) -> (CompactForm.Major, UInt64) {
        let first = try byte()
        guard let major = CompactForm.Major(rawValue: first >> 5) else {
            throw failure("has no such type")
        }
        switch first & 0x1f {
        case let small where small < 24: return (major, UInt64(small))
        case 24: return (major, try number(1))
        case 25: return (major, try number(2))
        case 26: return (major, try number(4))
        case 27: return (major, try number(8))
        default: throw failure("has no such length")
        }
    }

    private mutating func take(_ byte: UInt8) -> Bool {
        guard offset < bytes.count, bytes[offset] == byte else { return false }
        offset += 1
        return true
    }

    private mutating func item() throws(CompactSyntaxError) -> JSON {
        if take(CompactForm.object) { return try object() }
        if take(CompactForm.array) { return try array() }
        if take(CompactForm.null) { return .null }
        if take(CompactForm.true) { return true }
        if take(CompactForm.false) { return false }
        if take(CompactForm.double) { return .number(Double(bitPattern: try number(8))) }
        let (major, value) = try head()
        switch major {
        case .unsigned:
            return Int64(exactly: value).map { .integer($0) } ?? .number(Double(value))
        case .negative:
            guard let positive = Int64(exactly: value) else { throw failure("is too small") }
            return .integer(~positive)
        case .bytes: return .array(try octets(value).map { .integer(Int64($0)) })
        case .text: return .string(try text(value))
        case .tag: return .string(try reference(value))
        case .array, .map, .simple: throw failure("has no such form")
        }
    }

    private mutating func octets(
        _ length: UInt64
    ) throws(CompactSyntaxError) -> ArraySlice<UInt8> {
        guard length <= UInt64(bytes.count - offset) else { throw failure("ends early") }
        let end = offset + Int(length)
        defer { offset = end }
        if Int(length) >= CompactForm.shortestReferable(strings.count) { strings.append(nil) }
        return bytes[offset..<end]
    }

    private mutating func text(_ length: UInt64) throws(CompactSyntaxError) -> String {
        guard length <= UInt64(bytes.count - offset) else { throw failure("ends early") }
        let end = offset + Int(length)
        guard let text = String(validatingUTF8: bytes.span.extracting(offset..<end)) else {
            throw failure("is no UTF-8")
        }
        offset = end
        if Int(length) >= CompactForm.shortestReferable(strings.count) { strings.append(text) }
        return text
    }

    /// Reads the number of a string that came before, behind the tag.
    private mutating func reference(_ tag: UInt64) throws(CompactSyntaxError) -> String {
        guard tag == CompactForm.referenceTag, case (.unsigned, let index) = try head() else {
            throw failure("has no such tag")
        }
        guard index < UInt64(strings.count), let text = strings[Int(index)] else {
            throw failure("refers to no string")
        }
        return text
    }

    private mutating func enter() throws(CompactSyntaxError) {
        guard depth < JSON.depthLimit else { throw failure("nested too deep") }
        depth += 1
    }

    private mutating func array() throws(CompactSyntaxError) -> JSON {
        try enter()
        var elements: [JSON] = []
        while !take(CompactForm.end) { elements.append(try item()) }
        depth -= 1
        return .array(elements)
    }

    private mutating func object() throws(CompactSyntaxError) -> JSON {
        try enter()
        var members: [String: JSON] = [:]
        while !take(CompactForm.end) {
            guard case .string(let name) = try item() else { throw failure("a name is a string") }
            guard members.updateValue(try item(), forKey: name) == nil else {
                throw failure("a name stands twice in one object")
            }
        }
        depth -= 1
        return .object(members)
    }
}
