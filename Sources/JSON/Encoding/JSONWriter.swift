/// JSON writer without spaces: members in declaration order, dictionaries sorted by key.
package final class JSONWriter: ValueWriter {
    private var state = WriterState(JSONBytes())

    package init() {}

    package var bytes: [UInt8] { state.form.bytes }
    var count: Int { state.form.count }
    var depth: Int { state.depth }

    func openObject(isSorted: Bool) { state.openObject(isSorted: isSorted) }
    func openArray() { state.openArray() }
    func close(to level: Int) { state.close(to: level) }
    func end(level: Int, since start: Int) { state.end(level: level, since: start) }

    func member(_ name: String, at level: Int) {
        state.close(to: level)
        state.form.member(name)
    }

    func element(at level: Int) {
        state.close(to: level)
        state.form.element()
    }

    package func raw(_ text: String) { state.form.raw(text) }
    package func null() { state.form.raw("null") }
    package func bool(_ value: Bool) { state.form.raw(value ? "true" : "false") }
    package func integer(_ value: Int64) { state.form.raw("\(value)") }
    package func unsigned(_ value: UInt64) { state.form.raw("\(value)") }

    /// Writes a number; infinity and NaN, which JSON lacks, become null.
    package func number(_ number: Double) { state.form.number(number) }
    package func string(_ text: String) { state.form.string(text) }
    package func bytes(_ value: [UInt8]) { state.form.bytes(value) }
    package func json(_ json: JSON) { state.form.json(json) }
    package func value(_ value: some Encodable) { encode(value) }

    /// Writes a text that is encoded already.
    func encoded(_ text: EncodedJSON) { state.form.append(text.bytes) }
}

/// Text of JSON.
struct JSONBytes: ContainerForm {
    private(set) var bytes: [UInt8] = []
    private var depth = 0
    /// Open objects whose members are sorted, the innermost last.
    private var sorted: [Members] = []

    /// Members of an open object, with the place of each.
    private struct Members {
        let depth: Int
        let start: Int
        var places: [(name: String, start: Int)] = []
    }

    var count: Int { bytes.count }

    mutating func append(_ text: [UInt8]) { bytes += text }
    mutating func raw(_ text: String) { bytes.append(contentsOf: text.utf8) }

    mutating func number(_ number: Double) {
        raw(number.isFinite ? "\(number)" : "null")
    }

    mutating func string(_ text: String) {
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

    mutating func bytes(_ value: [UInt8]) {
        list(value, "[", "]") { $0.raw("\($1)") }
    }

    mutating func json(_ json: JSON) {
        switch json {
        case .null: raw("null")
        case .bool(let value): raw(value ? "true" : "false")
        case .integer(let value): raw("\(value)")
        case .number(let value): number(value)
        case .string(let text): string(text)
        case .array(let elements):
            list(elements, "[", "]") { $0.json($1) }
        case .object(let members):
            list(members.sorted { $0.key < $1.key }, "{", "}") { text, member in
                text.string(member.key)
                text.raw(":")
                text.json(member.value)
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

// Containers.
extension JSONBytes {
    mutating func beginObject(isSorted: Bool) {
        depth += 1
        if isSorted { sorted.append(Members(depth: depth, start: bytes.count + 1)) }
        bytes.append(UInt8(ascii: "{"))
    }

    mutating func endObject() {
        if let members = sorted.last, members.depth == depth {
            sorted.removeLast()
            sort(members)
        }
        bytes.append(UInt8(ascii: "}"))
        depth -= 1
    }

    mutating func beginArray() {
        depth += 1
        bytes.append(UInt8(ascii: "["))
    }

    mutating func endArray() {
        bytes.append(UInt8(ascii: "]"))
        depth -= 1
    }

    mutating func member(_ name: String) {
        separate(UInt8(ascii: "{"))
        if let last = sorted.indices.last, sorted[last].depth == depth {
            sorted[last].places.append((name, bytes.count))
        }
        string(name)
        bytes.append(UInt8(ascii: ":"))
    }

    mutating func element() { separate(UInt8(ascii: "[")) }

    /// Writes a comma unless the container was opened just now, which no value ends like.
    private mutating func separate(_ opening: UInt8) {
        if bytes.last != opening { bytes.append(UInt8(ascii: ",")) }
    }

    /// Sorts the members that have been written by their names.
    private mutating func sort(_ members: Members) {
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

/// An already encoded JSON text to embed in another.
package struct EncodedJSON: Encodable, Sendable {
    package let bytes: [UInt8]

    /// Wraps an encoded text.
    ///
    /// - Precondition: `bytes` are one JSON text without spaces.
    package init(bytes: [UInt8]) { self.bytes = bytes }

    package func encode(to encoder: any Encoder) throws {
        guard let encoder = encoder as? StreamEncoder,
            let writer = encoder.writer as? JSONWriter
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

    /// Converts `value` to JSON, which may be nested deeper than JSON here may be.
    ///
    /// - Throws: `JSONSyntaxError` if it has more than `depthLimit` levels.
    package init(converting value: some Encodable) throws(JSONSyntaxError) {
        self = try JSON(parsing: Self.encoded(value))
    }

    /// Converts `value` to JSON by encoding and parsing it.
    public init(encoding value: some Encodable) {
        do throws(JSONSyntaxError) {
            self = try JSON(converting: value)
        } catch {
            preconditionFailure("\(type(of: value)) is deeper than JSON here may be: \(error)")
        }
    }
}
