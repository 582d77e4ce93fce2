/// Encoder that writes values at once, in the order in which they are encoded.
///
/// Nothing is kept of them, so it costs little; in return, a container is complete as soon as its
/// parent goes on.
struct StreamEncoder: Encoder {
    let writer: any ValueWriter
    /// Number of containers around the value.
    let level: Int

    /// Empty, because no error of this encoder depends on the path.
    var codingPath: [any CodingKey] { [] }
    var userInfo: [CodingUserInfoKey: Any] { [:] }

    func encode<Value: Encodable>(_ value: Value) throws {
        // Compares types first: a failing cast costs more than encoding most values.
        if Value.self == JSON.self, let json = value as? JSON { return writer.json(json) }
        if Value.self == [UInt8].self, let bytes = value as? [UInt8] {
            return writer.bytes(bytes)
        }
        let start = writer.count
        try value.encode(to: self)
        writer.end(level: level, since: start)
    }

    func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
        if writer.depth > level {
            // Another part of the value has members in the same object.
            writer.close(to: level + 1)
        } else {
            // A dictionary's members have no order of their own.
            writer.openObject(isSorted: ObjectIdentifier(type) == DictionaryKeys.type)
        }
        return KeyedEncodingContainer(KeyedStream<Key>(writer: writer, level: level + 1))
    }

    func unkeyedContainer() -> any UnkeyedEncodingContainer {
        writer.openArray()
        return UnkeyedStream(writer: writer, level: level + 1)
    }

    func singleValueContainer() -> any SingleValueEncodingContainer {
        SingleStream(encoder: self)
    }
}

/// The coding keys of dictionaries: a type of the standard library that has no public name.
///
/// Comparing it is many times cheaper than asking of each value whether it is a dictionary.
private enum DictionaryKeys {
    /// `nil` if dictionaries encode themselves in another way.
    static let type: ObjectIdentifier? = {
        let probe = Probe()
        try? ["": 0].encode(to: probe)
        return probe.type
    }()

    /// Encoder that notes the type of the keys, and forgets what is encoded.
    private final class Probe: Encoder {
        private(set) var type: ObjectIdentifier?
        private let writer = CompactWriter()

        var codingPath: [any CodingKey] { [] }
        var userInfo: [CodingUserInfoKey: Any] { [:] }

        func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
            self.type = ObjectIdentifier(type)
            writer.openObject(isSorted: false)
            return KeyedEncodingContainer(KeyedStream<Key>(writer: writer, level: 1))
        }

        func unkeyedContainer() -> any UnkeyedEncodingContainer {
            StreamEncoder(writer: writer, level: 0).unkeyedContainer()
        }

        func singleValueContainer() -> any SingleValueEncodingContainer {
            StreamEncoder(writer: writer, level: 0).singleValueContainer()
        }
    }
}

/// Encoding container for the members of an object.
struct KeyedStream<Key: CodingKey>: KeyedEncodingContainerProtocol {
    let writer: any ValueWriter
    /// Number of containers up to and with this one.
    let level: Int

    var codingPath: [any CodingKey] { [] }

    private func begin(_ key: Key) { writer.member(key.stringValue, at: level) }

    func encodeNil(forKey key: Key) {
        begin(key)
        writer.null()
    }

    func encode(_ value: Bool, forKey key: Key) {
        begin(key)
        writer.bool(value)
    }

    func encode(_ value: String, forKey key: Key) {
        begin(key)
        writer.string(value)
    }

    func encode(_ value: Double, forKey key: Key) {
        begin(key)
        writer.number(value)
    }

    func encode(_ value: Float, forKey key: Key) { encode(Double(value), forKey: key) }

    private func encode(integer value: some FixedWidthInteger, forKey key: Key) {
        begin(key)
        writer.integer(value)
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
        try StreamEncoder(writer: writer, level: level).encode(value)
    }

    func nestedContainer<Nested: CodingKey>(
        keyedBy type: Nested.Type,
        forKey key: Key
    ) -> KeyedEncodingContainer<Nested> {
        begin(key)
        return StreamEncoder(writer: writer, level: level).container(keyedBy: type)
    }

    func nestedUnkeyedContainer(forKey key: Key) -> any UnkeyedEncodingContainer {
        begin(key)
        return StreamEncoder(writer: writer, level: level).unkeyedContainer()
    }

    func superEncoder() -> any Encoder { StreamEncoder(writer: writer, level: level - 1) }

    func superEncoder(forKey key: Key) -> any Encoder {
        begin(key)
        return StreamEncoder(writer: writer, level: level)
    }
}

/// Encoding container for the elements of an array.
struct UnkeyedStream: UnkeyedEncodingContainer {
    let writer: any ValueWriter
    /// Number of containers up to and with this one.
    let level: Int
    private(set) var count = 0

    init(writer: any ValueWriter, level: Int) {
        self.writer = writer
        self.level = level
    }

    var codingPath: [any CodingKey] { [] }

    private mutating func next() -> StreamEncoder {
        writer.element(at: level)
        count += 1
        return StreamEncoder(writer: writer, level: level)
    }

    mutating func encodeNil() {
        _ = next()
        writer.null()
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

    func encodeNil() { encoder.writer.null() }
    func encode(_ value: Bool) { encoder.writer.bool(value) }
    func encode(_ value: String) { encoder.writer.string(value) }
    func encode(_ value: Double) { encoder.writer.number(value) }
    func encode(_ value: Float) { encode(Double(value)) }
    func encode(_ value: Int) { encoder.writer.integer(value) }
    func encode(_ value: Int8) { encoder.writer.integer(value) }
    func encode(_ value: Int16) { encoder.writer.integer(value) }
    func encode(_ value: Int32) { encoder.writer.integer(value) }
    func encode(_ value: Int64) { encoder.writer.integer(value) }
    func encode(_ value: UInt) { encoder.writer.integer(value) }
    func encode(_ value: UInt8) { encoder.writer.integer(value) }
    func encode(_ value: UInt16) { encoder.writer.integer(value) }
    func encode(_ value: UInt32) { encoder.writer.integer(value) }
    func encode(_ value: UInt64) { encoder.writer.integer(value) }
    func encode(_ value: some Encodable) throws { try encoder.encode(value) }
}
