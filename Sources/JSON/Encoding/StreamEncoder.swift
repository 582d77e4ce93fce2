/// Encoder that writes values at once, in the order in which they are encoded.
///
/// Nothing is kept of them, so it costs little; in return, a container is complete as soon as its
/// parent goes on.
struct StreamEncoder: Encoder {
    let stream: EncodingStream
    /// Number of containers around the value.
    let level: Int

    /// Empty, because no error of this encoder depends on the path.
    var codingPath: [any CodingKey] { [] }
    var userInfo: [CodingUserInfoKey: Any] { [:] }

    func encode<Value: Encodable>(_ value: Value) throws {
        // Compares types first: a failing cast costs more than encoding most values.
        if Value.self == JSON.self, let json = value as? JSON { return stream.writer.json(json) }
        if Value.self == [UInt8].self, let bytes = value as? [UInt8] {
            return stream.writer.bytes(bytes)
        }
        let start = stream.writer.count
        stream.sortsNext = value is any KeyedByNames
        try value.encode(to: self)
        stream.sortsNext = false
        stream.close(to: level)
        if stream.writer.count == start {
            stream.openObject()
            stream.close(to: level)
        }
    }

    func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
        if stream.depth > level {
            // Another part of the value has members in the same object.
            stream.close(to: level + 1)
        } else {
            stream.openObject()
        }
        return KeyedEncodingContainer(KeyedStream<Key>(stream: stream, level: level + 1))
    }

    func unkeyedContainer() -> any UnkeyedEncodingContainer {
        stream.openArray()
        return UnkeyedStream(stream: stream, level: level + 1)
    }

    func singleValueContainer() -> any SingleValueEncodingContainer {
        SingleStream(encoder: self)
    }
}

/// Writer together with the containers that are open.
final class EncodingStream {
    let writer: any ValueWriter
    /// Whether the container that is opened next is a dictionary.
    ///
    /// Its members have no order of their own.
    var sortsNext = false
    /// For each open container, the outermost first, whether it is an object.
    private var open: [Bool] = []

    init(_ writer: any ValueWriter) { self.writer = writer }

    var depth: Int { open.count }

    func openObject() {
        writer.openObject(isSorted: sortsNext)
        sortsNext = false
        open.append(true)
    }

    func openArray() {
        writer.openArray()
        sortsNext = false
        open.append(false)
    }

    /// Closes the innermost containers until `level` ones are open.
    func close(to level: Int) {
        while open.count > level, let isObject = open.popLast() {
            if isObject { writer.closeObject() } else { writer.closeArray() }
        }
        precondition(open.count == level, "a value is encoded into a container that was complete")
    }
}

/// Conformance of dictionaries, whose members are sorted because they have no order.
private protocol KeyedByNames {}
extension Dictionary: KeyedByNames {}

/// Encoding container for the members of an object.
struct KeyedStream<Key: CodingKey>: KeyedEncodingContainerProtocol {
    let stream: EncodingStream
    /// Number of containers up to and with this one.
    let level: Int

    var codingPath: [any CodingKey] { [] }

    private func begin(_ key: Key) {
        stream.close(to: level)
        stream.writer.member(key.stringValue)
    }

    func encodeNil(forKey key: Key) {
        begin(key)
        stream.writer.null()
    }

    func encode(_ value: Bool, forKey key: Key) {
        begin(key)
        stream.writer.bool(value)
    }

    func encode(_ value: String, forKey key: Key) {
        begin(key)
        stream.writer.string(value)
    }

    func encode(_ value: Double, forKey key: Key) {
        begin(key)
        stream.writer.number(value)
    }

    func encode(_ value: Float, forKey key: Key) { encode(Double(value), forKey: key) }

    private func encode(integer value: some FixedWidthInteger, forKey key: Key) {
        begin(key)
        stream.writer.integer(value)
    }

    func encode(_ value: Int, forKey key: Key) { encode(integer: value, forKey: key) }
    func encode(_ value: Int8, forKey key: Key) { encode(integer: value, forKey: key) }
    func encode(_ value: Int16, forKey key: Key) { encode(integer: value, forKey: key) }
    func encode(_ value: Int32, forKey key: Key) { encode(integer: value, forKey: key) }
    func encode(_ value: Int64, forKey key: Key) { encode(integer: value, forKey: key) }
    func encode(_ value: UInt, forKey key: Key) { encode(integer: value, forKey: key) }
    func encode(_ value: UInt8, forKey key: Key) { encode(integer: value, forKey: key) }
    func encode(_ value: UInt16, forKey key: Key) { encode(integer: value, forKey: key) }
    func encode(_ value: UInt32, forKey key: Key) { encode(integer: value, forKey: key) }
    func encode(_ value: UInt64, forKey key: Key) { encode(integer: value, forKey: key) }

    func encode(_ value: some Encodable, forKey key: Key) throws {
        begin(key)
        try StreamEncoder(stream: stream, level: level).encode(value)
    }

    func nestedContainer<Nested: CodingKey>(
        keyedBy type: Nested.Type,
        forKey key: Key
    ) -> KeyedEncodingContainer<Nested> {
        begin(key)
        return StreamEncoder(stream: stream, level: level).container(keyedBy: type)
    }

    func nestedUnkeyedContainer(forKey key: Key) -> any UnkeyedEncodingContainer {
        begin(key)
        return StreamEncoder(stream: stream, level: level).unkeyedContainer()
    }

    func superEncoder() -> any Encoder { StreamEncoder(stream: stream, level: level - 1) }

    func superEncoder(forKey key: Key) -> any Encoder {
        begin(key)
        return StreamEncoder(stream: stream, level: level)
    }
}

/// Encoding container for the elements of an array.
struct UnkeyedStream: UnkeyedEncodingContainer {
    let stream: EncodingStream
    /// Number of containers up to and with this one.
    let level: Int
    private(set) var count = 0

    init(stream: EncodingStream, level: Int) {
        self.stream = stream
        self.level = level
    }

    var codingPath: [any CodingKey] { [] }

    private mutating func next() -> StreamEncoder {
        stream.close(to: level)
        stream.writer.element()
        count += 1
        return StreamEncoder(stream: stream, level: level)
    }

    mutating func encodeNil() {
        _ = next()
        stream.writer.null()
    }

    mutating func encode(_ value: some Encodable) throws { try next().encode(value) }

    mutating func nestedContainer<Nested: CodingKey>(
        keyedBy type: Nested.Type
    ) -> KeyedEncodingContainer<Nested> {
        next().container(keyedBy: type)
    }

    mutating func nestedUnkeyedContainer() -> any UnkeyedEncodingContainer {
        next().unkeyedContainer()
    }

    mutating func superEncoder() -> any Encoder { next() }
}

/// Encoding container for a single value.
struct SingleStream: SingleValueEncodingContainer {
    let encoder: StreamEncoder

    var codingPath: [any CodingKey] { [] }

    func encodeNil() { encoder.stream.writer.null() }
    func encode(_ value: Bool) { encoder.stream.writer.bool(value) }
    func encode(_ value: String) { encoder.stream.writer.string(value) }
    func encode(_ value: Double) { encoder.stream.writer.number(value) }
    func encode(_ value: Float) { encode(Double(value)) }
    func encode(_ value: Int) { encoder.stream.writer.integer(value) }
    func encode(_ value: Int8) { encoder.stream.writer.integer(value) }
    func encode(_ value: Int16) { encoder.stream.writer.integer(value) }
    func encode(_ value: Int32) { encoder.stream.writer.integer(value) }
    func encode(_ value: Int64) { encoder.stream.writer.integer(value) }
    func encode(_ value: UInt) { encoder.stream.writer.integer(value) }
    func encode(_ value: UInt8) { encoder.stream.writer.integer(value) }
    func encode(_ value: UInt16) { encoder.stream.writer.integer(value) }
    func encode(_ value: UInt32) { encoder.stream.writer.integer(value) }
    func encode(_ value: UInt64) { encoder.stream.writer.integer(value) }
    func encode(_ value: some Encodable) throws { try encoder.encode(value) }
}
