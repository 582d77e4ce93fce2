/// JSON writer without spaces: members in declaration order, dictionaries sorted by key.
package struct JSONWriter {
    package private(set) var bytes: [UInt8] = []

    package init() {}

    package mutating func raw(_ text: String) { bytes.append(contentsOf: text.utf8) }

    /// Writes a number; infinity and NaN, which JSON lacks, become null.
    package mutating func number(_ number: Double) { raw(number.isFinite ? "\(number)" : "null") }

    package mutating func string(_ text: String) {
        bytes.append(UInt8(ascii: "\""))
        defer { bytes.append(UInt8(ascii: "\"")) }
        guard text.utf8.contains(where: Self.isEscaped) else { return raw(text) }
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "\""), UInt8(ascii: "\\"):
                bytes.append(UInt8(ascii: "\\"))
                bytes.append(byte)
            case 0x0a: raw("\\n")
            case 0x0d: raw("\\r")
            case 0x09: raw("\\t")
            case 0..<0x20: raw(byte < 0x10 ? "\\u000" : "\\u00"); raw(String(byte, radix: 16))
            default: bytes.append(byte)
            }
        }
    }

    private static func isEscaped(_ byte: UInt8) -> Bool {
        byte < 0x20 || byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\")
    }

    package mutating func value(_ value: some Encodable) {
        let node = JSONNode()
        do {
            try TreeEncoder(node: node).encode(value)
        } catch {
            preconditionFailure("\(type(of: value)) does not encode: \(error)")
        }
        self.node(node)
    }

    package mutating func json(_ json: JSON) {
        switch json {
        case .null: raw("null")
        case .bool(let bool): raw(bool ? "true" : "false")
        case .integer(let integer): raw("\(integer)")
        case .number(let double): number(double)
        case .string(let text): string(text)
        case .array(let elements):
            list(elements, "[", "]") { writer, element in writer.json(element) }
        case .object(let members):
            list(members.sorted { $0.key < $1.key }, "{", "}") { writer, member in
                writer.string(member.key)
                writer.raw(":")
                writer.json(member.value)
            }
        }
    }

    private mutating func node(_ node: JSONNode) {
        switch node.content {
        case .json(let json): self.json(json)
        case .text(let text): bytes += text.bytes
        case .unsigned(let integer): raw("\(integer)")
        case .array(let elements):
            list(elements, "[", "]") { writer, element in writer.node(element) }
        case .object(let members):
            list(members, "{", "}") { writer, member in
                writer.string(member.key)
                writer.raw(":")
                writer.node(member.value)
            }
        }
    }

    private mutating func list<Element>(
        _ elements: [Element],
        _ open: String,
        _ close: String,
        _ write: (inout Self, Element) -> Void
    ) {
        raw(open)
        var isFirst = true
        for element in elements {
            if !isFirst { raw(",") }
            isFirst = false
            write(&self, element)
        }
        raw(close)
    }
}

extension JSON {
    /// Encodes `value` as one JSON text without spaces or newline.
    public static func encoded(_ value: some Encodable) -> [UInt8] {
        var writer = JSONWriter()
        writer.value(value)
        return writer.bytes
    }

    /// Converts `value` to JSON by encoding and parsing it.
    public init(encoding value: some Encodable) {
        let bytes = Self.encoded(value)
        do throws(JSONSyntaxError) {
            self = try JSON(parsing: bytes)
        } catch {
            preconditionFailure("\(type(of: value)) is deeper than JSON here may be: \(error)")
        }
    }
}
