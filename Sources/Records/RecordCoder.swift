/// Value that is written to records and read from them.
///
/// A type of several fields lists them in `fields`, which serves both directions, so they cannot
/// differ. Its fields have numbers that never get another meaning. A field that a later version
/// adds has a new number, and a default in `init(blank:)` for records without it.
package protocol Recorded: RecordValue {
    /// Makes a value with the defaults of all fields.
    init(blank: Void)
    mutating func fields(_ coder: inout RecordCoder)
}

/// Value of one field.
package protocol RecordValue {
    func write(to coder: inout RecordCoder)
    /// Reads a value of `length` bytes; `nil` if they are none.
    static func read(_ length: Int, from coder: inout RecordCoder) -> Self?
    /// Lists the fields of the type, and of the types of these.
    static func describe(to table: inout RecordFieldTable) -> String
}

/// Writer or reader of a record's fields.
///
/// A field is its number, the length of its value, and the value; a reader skips numbers that it
/// does not know. An optional field that is `nil` is left out.
package struct RecordCoder {
    private enum Mode { case writing, reading, describing }

    /// Version of the form in which fields are written; the first byte of each record.
    package static let version: UInt8 = 1
    /// Depth of records within records; deeper ones are refused.
    private static let depthLimit = 16

    private let mode: Mode
    package private(set) var bytes: [UInt8]
    package private(set) var position = 0
    /// Bounds of the record that is being read.
    private var start = 0
    private var end = 0
    private var depth = 0
    /// Whether something was read that is no record.
    package private(set) var hasFailed = false
    fileprivate var table = RecordFieldTable()
    fileprivate var described: [String] = []

    private init(_ mode: Mode, _ bytes: [UInt8]) {
        self.mode = mode
        self.bytes = bytes
        end = bytes.count
    }

    /// Encodes a value as a record.
    package static func encoded(_ value: some Recorded) -> [UInt8] {
        var coder = Self(.writing, [version])
        coder.bytes.reserveCapacity(192)
        var value = value
        value.fields(&coder)
        return coder.bytes
    }

    /// Decodes a record; `nil` for bytes that are none of this type.
    package static func decoded<Value: Recorded>(_ bytes: [UInt8], as type: Value.Type) -> Value? {
        guard bytes.first == version else { return nil }
        var coder = Self(.reading, bytes)
        coder.position = 1
        coder.start = 1
        var value = Value(blank: ())
        value.fields(&coder)
        return coder.hasFailed ? nil : value
    }

    /// Reads or writes a field.
    package mutating func field<Value: RecordValue>(
        _ number: UInt8,
        _ name: StaticString,
        _ value: inout Value
    ) {
        switch mode {
        case .writing: write(number, value)
        case .reading: if let read: Value = read(number) { value = read }
        case .describing: describe(number, name, Value.describe(to: &table))
        }
    }

    /// Reads or writes a field that may be absent.
    package mutating func field<Value: RecordValue>(
        _ number: UInt8,
        _ name: StaticString,
        _ value: inout Value?
    ) {
        switch mode {
        case .writing: if let value { write(number, value) }
        case .reading: if let read: Value = read(number) { value = read }
        case .describing: describe(number, name, Value.describe(to: &table) + "?")
        }
    }

    private mutating func describe(_ number: UInt8, _ name: StaticString, _ type: String) {
        described.append("\(number) \(name): \(type)")
    }
}

// Writing.
extension RecordCoder {
    private mutating func write(_ number: UInt8, _ value: some RecordValue) {
        bytes.append(number)
        writeSized(value)
    }

    /// Writes a value with its length in front.
    package mutating func writeSized(_ value: some RecordValue) {
        // Most values are short: a byte is enough for their length.
        let place = bytes.count
        bytes.append(0)
        value.write(to: &self)
        let length = bytes.count - place - 1
        guard length >= 0x80 else { return bytes[place] = UInt8(truncatingIfNeeded: length) }
        let longer = [7, 14, 21].map { UInt8(truncatingIfNeeded: length >> $0 & 0x7f) }
        bytes[place] = UInt8(truncatingIfNeeded: length & 0x7f) | 0x80
        bytes.insert(contentsOf: [longer[0] | 0x80, longer[1] | 0x80, longer[2]], at: place + 1)
    }

    package mutating func write(byte: UInt8) { bytes.append(byte) }
    package mutating func write(_ text: String.UTF8View) { bytes.append(contentsOf: text) }
    package mutating func write(_ more: [UInt8]) { bytes += more }

    /// Writes a number in as few bytes as it has, the lowest first.
    package mutating func write(word: UInt64) {
        var rest = word
        while rest != 0 {
            bytes.append(UInt8(truncatingIfNeeded: rest))
            rest >>= 8
        }
    }
}

// Reading.
extension RecordCoder {
    private mutating func read<Value: RecordValue>(_ number: UInt8) -> Value? {
        // Fields are mostly read in the order in which they were written.
        if let length = header(number) { return value(length) }
        let here = position
        position = start
        while position < end, !hasFailed {
            if let length = header(number) {
                let found: Value? = value(length)
                position = here
                return found
            }
            skip()
        }
        position = here
        return nil
    }

    private mutating func value<Value: RecordValue>(_ length: Int) -> Value? {
        let next = position + length
        defer { position = next }
        guard let value = Value.read(length, from: &self), !hasFailed, position <= next else {
            fail()
            return nil
        }
        return value
    }

    /// Takes the number and length of a field if it is the one of this number.
    private mutating func header(_ number: UInt8) -> Int? {
        guard position < end, bytes[position] == number else { return nil }
        position += 1
        return length()
    }

    private mutating func skip() {
        position += 1
        guard let length = length() else { return }
        position += length
    }

    /// Reads a length that does not exceed the record.
    private mutating func length() -> Int? {
        var length = 0
        for shift in stride(from: 0, through: 21, by: 7) {
            guard position < end else { break }
            let byte = bytes[position]
            position += 1
            length |= Int(byte & 0x7f) << shift
            guard byte & 0x80 == 0 else { continue }
            guard length <= end - position else { break }
            return length
        }
        fail()
        return nil
    }

    package mutating func fail() { hasFailed = true }

    /// Reads a value with its length in front; `nil` at the end of a list of `length` bytes that
    /// began at `first`.
    package mutating func readSized<Value: RecordValue>(until last: Int) -> Value? {
        guard position < last, !hasFailed, let length = length() else { return nil }
        return value(length)
    }

    package mutating func readBytes(_ count: Int) -> ArraySlice<UInt8> {
        guard count <= end - position else {
            fail()
            return []
        }
        defer { position += count }
        return bytes[position..<position + count]
    }

    package mutating func readWord(_ count: Int) -> UInt64? {
        guard count <= 8 else { return nil }
        return readBytes(count).reversed().reduce(0) { $0 << 8 | UInt64($1) }
    }

    /// Reads a record within this one.
    fileprivate mutating func readRecord<Value: Recorded>(_ length: Int) -> Value? {
        guard depth < Self.depthLimit else { return nil }
        let outer = (start, end)
        depth += 1
        (start, end) = (position, position + length)
        var value = Value(blank: ())
        value.fields(&self)
        (start, end) = outer
        depth -= 1
        return value
    }
}

extension Recorded {
    package func write(to coder: inout RecordCoder) {
        var copy = self
        copy.fields(&coder)
    }

    package static func read(_ length: Int, from coder: inout RecordCoder) -> Self? {
        coder.readRecord(length)
    }

    package static func describe(to table: inout RecordFieldTable) -> String {
        let name = String(reflecting: Self.self).split(separator: ".").dropFirst()
            .joined(separator: ".")
        guard table.fields[name] == nil else { return name }
        table.fields[name] = []
        var coder = RecordCoder.describing(table)
        var value = Self(blank: ())
        value.fields(&coder)
        table = coder.table
        table.fields[name] = coder.described
        return name
    }
}

extension RecordCoder {
    fileprivate static func describing(_ table: RecordFieldTable) -> Self {
        var coder = Self(.describing, [])
        coder.table = table
        return coder
    }
}

/// All fields of some types of records, to be compared with those of earlier versions.
package struct RecordFieldTable {
    /// Fields of each type, as `number name: type`.
    package fileprivate(set) var fields: [String: [String]] = [:]

    package init() {}

    /// One line a field, by the types' names.
    package var lines: [String] {
        fields.sorted { $0.key < $1.key }.flatMap { type, fields in
            fields.map { "\(type) \($0)" }
        }
    }
}
