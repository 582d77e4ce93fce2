/// Decoding container for the members of an object.
struct KeyedTree<Key: CodingKey>: KeyedDecodingContainerProtocol {
    let decoder: TreeDecoder
    let members: [String: JSON]

    var codingPath: [any CodingKey] { decoder.codingPath }

    var allKeys: [Key] {
        decoder.markAllRead()
        return members.keys.sorted().compactMap(Key.init(stringValue:))
    }

    func contains(_ key: Key) -> Bool {
        decoder.markRead(key.stringValue)
        return members[key.stringValue] != nil
    }

    private func child(_ key: Key) throws -> TreeDecoder {
        let name = key.stringValue
        decoder.markRead(name)
        guard let value = members[name] else {
            throw (codingPath + [NamedKey(name)]).refusal("is missing")
        }
        return TreeDecoder(value, at: NamedKey(name), in: decoder)
    }

    /// Returns whether the member is null, which unsets whatever is optional.
    func decodeNil(forKey key: Key) throws -> Bool { try child(key).value == .null }

    func decode(_ type: Bool.Type, forKey key: Key) throws -> Bool { try child(key).bool }
    func decode(_ type: String.Type, forKey key: Key) throws -> String {
        try child(key).string
    }
    func decode(_ type: Double.Type, forKey key: Key) throws -> Double {
        try child(key).double
    }
    func decode(_ type: Float.Type, forKey key: Key) throws -> Float {
        Float(try child(key).double)
    }
    func decode(_ type: Int.Type, forKey key: Key) throws -> Int {
        try child(key).integer(type)
    }
    func decode(_ type: Int8.Type, forKey key: Key) throws -> Int8 {
        try child(key).integer(type)
    }
    func decode(_ type: Int16.Type, forKey key: Key) throws -> Int16 {
        try child(key).integer(type)
    }
    func decode(_ type: Int32.Type, forKey key: Key) throws -> Int32 {
        try child(key).integer(type)
    }
    func decode(_ type: Int64.Type, forKey key: Key) throws -> Int64 {
        try child(key).integer(type)
    }
    func decode(_ type: UInt.Type, forKey key: Key) throws -> UInt {
        try child(key).integer(type)
    }
    func decode(_ type: UInt8.Type, forKey key: Key) throws -> UInt8 {
        try child(key).integer(type)
    }
    func decode(_ type: UInt16.Type, forKey key: Key) throws -> UInt16 {
        try child(key).integer(type)
    }
    func decode(_ type: UInt32.Type, forKey key: Key) throws -> UInt32 {
        try child(key).integer(type)
    }
    func decode(_ type: UInt64.Type, forKey key: Key) throws -> UInt64 {
        try child(key).integer(type)
    }

    func decode<T: Decodable>(_ type: T.Type, forKey key: Key) throws -> T {
        try child(key).decode(type)
    }

    func nestedContainer<Nested: CodingKey>(
        keyedBy type: Nested.Type,
        forKey key: Key
    ) throws -> KeyedDecodingContainer<Nested> {
        try child(key).container(keyedBy: type)
    }

    func nestedUnkeyedContainer(forKey key: Key) throws -> any UnkeyedDecodingContainer {
        try child(key).unkeyedContainer()
    }

    func superDecoder() throws -> any Decoder { decoder }

    func superDecoder(forKey key: Key) throws -> any Decoder { try child(key) }
}

/// Decoding container for the elements of an array.
struct UnkeyedTree: UnkeyedDecodingContainer {
    let decoder: TreeDecoder
    let elements: [JSON]
    private(set) var currentIndex = 0

    init(decoder: TreeDecoder, elements: [JSON]) {
        self.decoder = decoder
        self.elements = elements
    }

    var codingPath: [any CodingKey] { decoder.codingPath }
    var count: Int? { elements.count }
    var isAtEnd: Bool { currentIndex >= elements.count }

    private mutating func next() throws -> TreeDecoder {
        let key = NamedKey(intValue: currentIndex)
        guard !isAtEnd else { throw (codingPath + [key]).refusal("is missing") }
        defer { currentIndex += 1 }
        return TreeDecoder(elements[currentIndex], at: key, in: decoder)
    }

    mutating func decodeNil() throws -> Bool {
        guard !isAtEnd, elements[currentIndex] == .null else { return false }
        currentIndex += 1
        return true
    }

    mutating func decode(_ type: Bool.Type) throws -> Bool { try next().bool }
    mutating func decode(_ type: String.Type) throws -> String { try next().string }
    mutating func decode(_ type: Double.Type) throws -> Double { try next().double }
    mutating func decode(_ type: Float.Type) throws -> Float { Float(try next().double) }
    mutating func decode(_ type: Int.Type) throws -> Int { try next().integer(type) }
    mutating func decode(_ type: Int8.Type) throws -> Int8 { try next().integer(type) }
    mutating func decode(_ type: Int16.Type) throws -> Int16 { try next().integer(type) }
    mutating func decode(_ type: Int32.Type) throws -> Int32 { try next().integer(type) }
    mutating func decode(_ type: Int64.Type) throws -> Int64 { try next().integer(type) }
    mutating func decode(_ type: UInt.Type) throws -> UInt { try next().integer(type) }
    mutating func decode(_ type: UInt8.Type) throws -> UInt8 { try next().integer(type) }
    mutating func decode(_ type: UInt16.Type) throws -> UInt16 { try next().integer(type) }
    mutating func decode(_ type: UInt32.Type) throws -> UInt32 { try next().integer(type) }
    mutating func decode(_ type: UInt64.Type) throws -> UInt64 { try next().integer(type) }

    mutating func decode<T: Decodable>(_ type: T.Type) throws -> T { try next().decode(type) }

    mutating func nestedContainer<Nested: CodingKey>(
        keyedBy type: Nested.Type
    ) throws -> KeyedDecodingContainer<Nested> {
        try next().container(keyedBy: type)
    }

    mutating func nestedUnkeyedContainer() throws -> any UnkeyedDecodingContainer {
        try next().unkeyedContainer()
    }

    mutating func superDecoder() throws -> any Decoder { try next() }
}

/// Decoding container for a single value.
struct SingleTree: SingleValueDecodingContainer {
    let decoder: TreeDecoder

    var codingPath: [any CodingKey] { decoder.codingPath }

    func decodeNil() -> Bool { decoder.value == .null }

    func decode(_ type: Bool.Type) throws -> Bool { try decoder.bool }
    func decode(_ type: String.Type) throws -> String { try decoder.string }
    func decode(_ type: Double.Type) throws -> Double { try decoder.double }
    func decode(_ type: Float.Type) throws -> Float { Float(try decoder.double) }
    func decode(_ type: Int.Type) throws -> Int { try decoder.integer(type) }
    func decode(_ type: Int8.Type) throws -> Int8 { try decoder.integer(type) }
    func decode(_ type: Int16.Type) throws -> Int16 { try decoder.integer(type) }
    func decode(_ type: Int32.Type) throws -> Int32 { try decoder.integer(type) }
    func decode(_ type: Int64.Type) throws -> Int64 { try decoder.integer(type) }
    func decode(_ type: UInt.Type) throws -> UInt { try decoder.integer(type) }
    func decode(_ type: UInt8.Type) throws -> UInt8 { try decoder.integer(type) }
    func decode(_ type: UInt16.Type) throws -> UInt16 { try decoder.integer(type) }
    func decode(_ type: UInt32.Type) throws -> UInt32 { try decoder.integer(type) }
    func decode(_ type: UInt64.Type) throws -> UInt64 { try decoder.integer(type) }

    func decode<T: Decodable>(_ type: T.Type) throws -> T {
        decoder.markAllRead()
        return try TreeDecoder(decoder).decode(type)
    }
}
