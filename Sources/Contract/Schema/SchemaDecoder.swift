import JSON

/// Decoder without a value: it gives plausible ones, and records what a type asks for.
///
/// So the code that reads params is the only list of their names, types and ranges. A type is
/// decoded several times, with all, none and some of its optional members.
final class SchemaDecoder: Decoder {
    /// Rule for a member that its type does not tell, and that the reading code checks.
    enum Rule {
        case integers(ClosedRange<Int>)
        case numbers(ClosedRange<Double>)
        case count(ClosedRange<Int>)
        /// Most bytes of UTF-8.
        case bytes(Int)
        /// Members that an open object has at least.
        case members(any Decodable.Type)
    }

    /// Optional members that are present.
    enum Presence: Hashable {
        case all, none
        case only(String)
        case allBut(Set<String>)
    }

    /// One member of an object, as far as it was asked for.
    struct Member {
        var name: String
        /// Decoder of the member's value, whose schema is the member's.
        var decoder: SchemaDecoder
        var isOptional = false
        var rules: [Rule] = []
    }

    let builder: SchemaBuilder
    let presence: Presence
    private(set) var members: [Member] = []
    /// Schema of a value that is no object.
    private var schema: JSON?
    private(set) var isNullable = false

    var codingPath: [any CodingKey] { [] }
    var userInfo: [CodingUserInfoKey: Any] { [:] }

    init(builder: SchemaBuilder, presence: Presence) {
        self.builder = builder
        self.presence = presence
    }

    /// Schema of the value, by its type alone.
    var valueSchema: JSON { schema ?? ["type": "object"] }
    var isObject: Bool { schema == nil }
    /// Whether nothing has asked for the value.
    var isUnread: Bool { schema == nil && members.isEmpty }
    /// Decoder of a value inside this one.
    private var inner: SchemaDecoder {
        switch presence {
        case .all, .allBut: SchemaDecoder(builder: builder, presence: .all)
        case .none, .only: SchemaDecoder(builder: builder, presence: .none)
        }
    }

    private func has(_ name: String) -> Bool {
        switch presence {
        case .all: true
        case .none: false
        case .only(let present): name == present
        case .allBut(let absent): !absent.contains(name)
        }
    }

    func container<Key: CodingKey>(keyedBy: Key.Type) throws -> KeyedDecodingContainer<Key> {
        KeyedDecodingContainer(Keyed(decoder: self))
    }

    func unkeyedContainer() throws -> any UnkeyedDecodingContainer { Unkeyed(decoder: self) }

    func singleValueContainer() throws -> any SingleValueDecodingContainer {
        Single(decoder: self)
    }
}

extension SchemaDecoder {
    /// Records that the value is a `type`, and returns one that fits the rules.
    fileprivate func decode<T: Decodable>(_ type: T.Type, rules: [Rule] = []) throws -> T {
        schema = builder.schema(of: type)
        return try builder.sample(of: type, rules: rules)
    }

    fileprivate func note(_ rule: Rule, _ name: String) {
        members[index(of: name)].rules.append(rule)
    }

    private func index(of name: String) -> Int {
        if let index = members.firstIndex(where: { $0.name == name }) { return index }
        members.append(Member(name: name, decoder: inner))
        return members.count - 1
    }

    fileprivate func member(_ name: String) -> Member { members[index(of: name)] }

    fileprivate func makeOptional(_ name: String) { members[index(of: name)].isOptional = true }

    fileprivate func makeNullable() { isNullable = true }

    fileprivate func makeList(of element: JSON) {
        schema = ["type": "array", "items": element]
    }
}

extension KeyedDecodingContainer {
    /// Tells a `SchemaDecoder` of a rule for a member; other decoders have nothing to do with it.
    func note(_ rule: SchemaDecoder.Rule, _ key: Key) throws {
        (try superDecoder() as? SchemaDecoder)?.note(rule, key.stringValue)
    }
}

// A generic `decode` stands for those of all types that the protocols ask for.
extension SchemaDecoder {
    private struct Keyed<Key: CodingKey>: KeyedDecodingContainerProtocol {
        let decoder: SchemaDecoder

        var codingPath: [any CodingKey] { [] }
        var allKeys: [Key] { [] }

        func contains(_ key: Key) -> Bool {
            decoder.makeOptional(key.stringValue)
            return decoder.has(key.stringValue)
        }

        func decodeNil(forKey key: Key) throws -> Bool { !decoder.has(key.stringValue) }

        func decode<T: Decodable>(_ type: T.Type, forKey key: Key) throws -> T {
            let member = decoder.member(key.stringValue)
            return try member.decoder.decode(type, rules: member.rules)
        }

        func nestedContainer<Nested: CodingKey>(
            keyedBy type: Nested.Type,
            forKey key: Key
        ) throws -> KeyedDecodingContainer<Nested> {
            try decoder.member(key.stringValue).decoder.container(keyedBy: type)
        }

        func nestedUnkeyedContainer(forKey key: Key) throws -> any UnkeyedDecodingContainer {
            try decoder.member(key.stringValue).decoder.unkeyedContainer()
        }

        func superDecoder() throws -> any Decoder { decoder }

        func superDecoder(forKey key: Key) throws -> any Decoder {
            decoder.member(key.stringValue).decoder
        }
    }

    /// List of one element.
    private struct Unkeyed: UnkeyedDecodingContainer {
        let decoder: SchemaDecoder
        private(set) var currentIndex = 0

        init(decoder: SchemaDecoder) { self.decoder = decoder }

        var codingPath: [any CodingKey] { [] }
        var count: Int? { 1 }
        var isAtEnd: Bool { currentIndex > 0 }

        private mutating func next() -> SchemaDecoder {
            currentIndex += 1
            return decoder.inner
        }

        mutating func decodeNil() throws -> Bool { false }

        mutating func decode<T: Decodable>(_ type: T.Type) throws -> T {
            decoder.makeList(of: decoder.builder.schema(of: type))
            return try next().decode(type)
        }

        mutating func nestedContainer<Nested: CodingKey>(
            keyedBy type: Nested.Type
        ) throws -> KeyedDecodingContainer<Nested> {
            try next().container(keyedBy: type)
        }

        mutating func nestedUnkeyedContainer() throws -> any UnkeyedDecodingContainer {
            try next().unkeyedContainer()
        }

        mutating func superDecoder() throws -> any Decoder { next() }
    }

    private struct Single: SingleValueDecodingContainer {
        let decoder: SchemaDecoder

        var codingPath: [any CodingKey] { [] }

        func decodeNil() -> Bool {
            decoder.makeNullable()
            return false
        }

        func decode<T: Decodable>(_ type: T.Type) throws -> T { try decoder.decode(type) }
    }
}
