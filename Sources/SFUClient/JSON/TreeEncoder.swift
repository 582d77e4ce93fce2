/// A value on its way to a text; containers fill it in.
final class JSONNode {
    enum Content {
        case json(JSON)
        /// Numbers beyond `Int64`.
        case unsigned(UInt64)
        case array([JSONNode])
        /// In the order in which they were encoded.
        case object([(key: String, value: JSONNode)])
    }

    var content = Content.json([:])

    func add(_ key: String) -> JSONNode {
        let child = JSONNode()
        if case .object(var members) = content {
            content = .json(.null)
            members.append((key, child))
            content = .object(members)
        } else {
            content = .object([(key, child)])
        }
        return child
    }

    func append() -> JSONNode {
        let child = JSONNode()
        if case .array(var elements) = content {
            content = .json(.null)
            elements.append(child)
            content = .array(elements)
        } else {
            content = .array([child])
        }
        return child
    }

    func sort() {
        guard case .object(let members) = content else { return }
        content = .object(members.sorted { $0.key < $1.key })
    }
}

/// Encodes into a node and keeps the order of members, which Foundation's encoder does not.
struct TreeEncoder: Encoder {
    let node: JSONNode
    let codingPath: [any CodingKey]

    var userInfo: [CodingUserInfoKey: Any] { [:] }

    func encode(_ value: some Encodable) throws {
        if let json = value as? JSON {
            node.content = .json(json)
            return
        }
        try value.encode(to: self)
        if value is any KeyedByNames { node.sort() }
    }

    func child(_ node: JSONNode, _ key: any CodingKey) -> Self {
        Self(node: node, codingPath: codingPath + [key])
    }

    func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
        if case .object = node.content {} else { node.content = .object([]) }
        return KeyedEncodingContainer(KeyedNode<Key>(encoder: self))
    }

    func unkeyedContainer() -> any UnkeyedEncodingContainer {
        node.content = .array([])
        return UnkeyedNode(encoder: self)
    }

    func singleValueContainer() -> any SingleValueEncodingContainer { SingleNode(encoder: self) }

    func set(_ integer: some FixedWidthInteger) {
        if let small = Int64(exactly: integer) {
            node.content = .json(.integer(small))
        } else {
            node.content = .unsigned(UInt64(clamping: integer))
        }
    }
}

/// Dictionaries: what has no order of its own is sorted.
private protocol KeyedByNames {}
extension Dictionary: KeyedByNames {}

/// The members of an object being written.
struct KeyedNode<Key: CodingKey>: KeyedEncodingContainerProtocol {
    let encoder: TreeEncoder

    var codingPath: [any CodingKey] { encoder.codingPath }

    private func child(_ key: Key) -> TreeEncoder {
        encoder.child(encoder.node.add(key.stringValue), key)
    }

    func encodeNil(forKey key: Key) { child(key).node.content = .json(.null) }
    func encode(_ value: some Encodable, forKey key: Key) throws { try child(key).encode(value) }

    func nestedContainer<Nested: CodingKey>(
        keyedBy type: Nested.Type,
        forKey key: Key
    ) -> KeyedEncodingContainer<Nested> {
        child(key).container(keyedBy: type)
    }

    func nestedUnkeyedContainer(forKey key: Key) -> any UnkeyedEncodingContainer {
        child(key).unkeyedContainer()
    }

    func superEncoder() -> any Encoder { encoder }
    func superEncoder(forKey key: Key) -> any Encoder { child(key) }
}

/// The elements of an array being written.
struct UnkeyedNode: UnkeyedEncodingContainer {
    let encoder: TreeEncoder

    var codingPath: [any CodingKey] { encoder.codingPath }

    var count: Int {
        guard case .array(let elements) = encoder.node.content else { return 0 }
        return elements.count
    }

    private func next() -> TreeEncoder {
        encoder.child(encoder.node.append(), NamedKey(intValue: count))
    }

    func encodeNil() { next().node.content = .json(.null) }
    func encode(_ value: some Encodable) throws { try next().encode(value) }

    func nestedContainer<Nested: CodingKey>(
        keyedBy type: Nested.Type
    ) -> KeyedEncodingContainer<Nested> {
        next().container(keyedBy: type)
    }

    func nestedUnkeyedContainer() -> any UnkeyedEncodingContainer { next().unkeyedContainer() }
    func superEncoder() -> any Encoder { next() }
}

/// A value being written by itself.
struct SingleNode: SingleValueEncodingContainer {
    let encoder: TreeEncoder

    var codingPath: [any CodingKey] { encoder.codingPath }

    func encodeNil() { encoder.node.content = .json(.null) }
    func encode(_ value: Bool) { encoder.node.content = .json(.bool(value)) }
    func encode(_ value: String) { encoder.node.content = .json(.string(value)) }
    func encode(_ value: Double) { encoder.node.content = .json(.number(value)) }
    func encode(_ value: Float) { encode(Double(value)) }
    func encode(_ value: Int) { encoder.set(value) }
    func encode(_ value: Int8) { encoder.set(value) }
    func encode(_ value: Int16) { encoder.set(value) }
    func encode(_ value: Int32) { encoder.set(value) }
    func encode(_ value: Int64) { encoder.set(value) }
    func encode(_ value: UInt) { encoder.set(value) }
    func encode(_ value: UInt8) { encoder.set(value) }
    func encode(_ value: UInt16) { encoder.set(value) }
    func encode(_ value: UInt32) { encoder.set(value) }
    func encode(_ value: UInt64) { encoder.set(value) }
    func encode(_ value: some Encodable) throws { try encoder.encode(value) }
}
