/// JSON writer without spaces: members in declaration order, dictionaries sorted by key.
package final class JSONWriter: ValueWriter {
    package private(set) var bytes: [UInt8] = []
    private var depth = 0
    /// Open objects whose members are sorted, the innermost last.
    private var sorted: [Members] = []

    /// Members of an open object, with the place of each.
    private struct Members {
        let depth: Int
        let start: Int
        var places: [(name: String, start: Int)] = []
    }

    package init() {}

    var count: Int { bytes.count }

    package func raw(_ text: String) { bytes.append(contentsOf: text.utf8) }

    package func null() { raw("null") }
    package func bool(_ value: Bool) { raw(value ? "true" : "false") }
    package func integer(_ value: Int64) { raw("\(value)") }
    package func unsigned(_ value: UInt64) { raw("\(value)") }

    /// Writes a number; infinity and NaN, which JSON lacks, become null.
    package func number(_ number: Double) { raw(number.isFinite ? "\(number)" : "null") }

    package func string(_ text: String) {
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

    package func bytes(_ value: [UInt8]) {
        list(value, "[", "]") { raw("\($0)") }
    }

    package func json(_ json: JSON) {
        switch json {
        case .null: null()
        case .bool(let value): bool(value)
        case .integer(let value): integer(value)
        case .number(let value): number(value)
        case .string(let text): string(text)
        case .array(let elements):
            list(elements, "[", "]") { self.json($0) }
        case .object(let members):
            list(members.sorted { $0.key < $1.key }, "{", "}") { member in
                string(member.key)
                raw(":")
                self.json(member.value)
            }
        }
    }

    private func list<Element>(
        _ elements: [Element],
        _ open: String,
        _ close: String,
        _ write: (Element) -> Void
    ) {
        raw(open)
        var isFirst = true
        for element in elements {
            if !isFirst { raw(",") }
            isFirst = false
            write(element)
        }
        raw(close)
    }
}

// Containers.
extension JSONWriter {
    func openObject(isSorted: Bool) {
        depth += 1
        if isSorted { sorted.append(Members(depth: depth, start: bytes.count + 1)) }
        bytes.append(UInt8(ascii: "{"))
    }

    func closeObject() {
        if let members = sorted.last, members.depth == depth {
            sorted.removeLast()
            sort(members)
        }
        bytes.append(UInt8(ascii: "}"))
        depth -= 1
    }

    func openArray() {
        depth += 1
        bytes.append(UInt8(ascii: "["))
    }

    func closeArray() {
        bytes.append(UInt8(ascii: "]"))
        depth -= 1
    }

    func member(_ name: String) {
        separate(UInt8(ascii: "{"))
        if let last = sorted.indices.last, sorted[last].depth == depth {
            sorted[last].places.append((name, bytes.count))
        }
        string(name)
        bytes.append(UInt8(ascii: ":"))
    }

    func element() { separate(UInt8(ascii: "[")) }

    /// Writes a comma unless the container was opened just now, which no value ends like.
    private func separate(_ opening: UInt8) {
        if bytes.last != opening { bytes.append(UInt8(ascii: ",")) }
    }

    /// Sorts the members that have been written by their names.
    private func sort(_ members: Members) {
        let places = members.places
        let ends = places.dropFirst().map { $0.start - 1 } + [bytes.count]
        let order = places.indices.sorted { places[$0].name < places[$1].name }
        guard order != Array(places.indices) else { return }
        let written = bytes
        bytes.removeSubrange(members.start...)
        for index in order {
            if bytes.count > members.start { bytes.append(UInt8(ascii: ",")) }
            bytes += written[places[index].start..<ends[index]]
        }
    }
}

extension JSONWriter {
    package func value(_ value: some Encodable) { encode(value) }

    /// Writes a text that is encoded already.
    func encoded(_ text: EncodedJSON) { bytes += text.bytes }
}

/// An already encoded JSON text to embed in another.
package struct EncodedJSON: Encodable, Sendable {
    package let bytes: [UInt8]

    /// Wraps an encoded text.
    ///
    /// - Precondition: `bytes` are one JSON text without spaces.
    package init(bytes: [UInt8]) { self.bytes = bytes }

    package func encode(to encoder: any Encoder) throws {
        guard let encoder = encoder as? StreamEncoder,
            let writer = encoder.stream.writer as? JSONWriter
        else {
            let context = EncodingError.Context(
                codingPath: encoder.codingPath,
                debugDescription: "a JSON text is encoded with JSON.encoded only"
            )
            throw EncodingError.invalidValue(self, context)
        }
        writer.encoded(self)
    }
}

extension JSON {
    /// Encodes `value` as one JSON text without spaces or newline.
    public static func encoded(_ value: some Encodable) -> [UInt8] {
        let writer = JSONWriter()
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
