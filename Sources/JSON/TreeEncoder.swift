/// A node of the JSON tree that encoding containers fill in.
final class JSONNode {
    enum Content {
        case json(JSON)
        case text(EncodedJSON)
        /// A number beyond `Int64`.
        case unsigned(UInt64)
        case array([JSONNode])
        /// Members in encoding order.
        case object([(key: String, value: JSONNode)])
    }

    var content = Content.json([:])
    /// Whether a second keyed container was opened, which may name a member again.
    var isReopened = false

    func add(_ key: String) -> JSONNode {
        if isReopened, let present = member(key) { return present }
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

    private func member(_ key: String) -> JSONNode? {
        guard case .object(let members) = content else { return nil }
        return members.first { $0.key == key }?.value
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

/// An already encoded JSON text to embed in another.
package struct EncodedJSON: Encodable, Sendable {
    package let bytes: [UInt8]

    /// Wraps an encoded text.
    ///
    /// - Precondition: `bytes` are one JSON text without spaces.
    package init(bytes: [UInt8]) { self.bytes = bytes }

    package func encode(to encoder: any Encoder) throws {
        guard let tree = encoder as? TreeEncoder else {
            let context = EncodingError.Context(
                codingPath: encoder.codingPath,
                debugDescription: "a JSON text is encoded with JSON.encoded only"
            )
            throw EncodingError.invalidValue(self, context)
        }
        tree.node.content = .text(self)
    }
}

/// Encoder into a `JSONNode` that keeps the order of members, unlike Foundation's encoder.
struct TreeEncoder: Encoder {
    let node: JSONNode

    /// Empty, because no error of this encoder depends on the path.
    var codingPath: [any CodingKey] { [] }
    var userInfo: [CodingUserInfoKey: Any] { [:] }

    func encode<Value: Encodable>(_ value: Value) throws {
        // Compares types first: a failing cast costs more than encoding most values.
        if Value.self == JSON.self, let json = value as? JSON {
            node.content = .json(json)
            return
        }
        try value.encode(to: self)
        if case .object = node.content, value is any KeyedByNames { node.sort() }
    }

    func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
        if case .object = node.content {
            node.isReopened = true
        } else {
            node.content = .object([])
        }
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

/// Conformance of dictionaries, whose members are sorted because they have no order.
private protocol KeyedByNames {}
extension Dictionary: KeyedByNames {}

/// Encoding container for the members of an object.
struct KeyedNode<Key: CodingKey>: KeyedEncodingContainerProtocol {
    let encoder: TreeEncoder

    var codingPath: [any CodingKey] { encoder.codingPath }

    private func child(_ key: Key) -> TreeEncoder {
        TreeEncoder(node: encoder.node.add(key.stringValue))
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

/// Encoding container for the elements of an array.
struct UnkeyedNode: UnkeyedEncodingContainer {
    let encoder: TreeEncoder

    var codingPath: [any CodingKey] { encoder.codingPath }

    var count: Int {
        guard case .array(let elements) = encoder.node.content else { return 0 }
        return elements.count
    }

    private func next() -> TreeEncoder { TreeEncoder(node: encoder.node.append()) }

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

/// Encoding container for a single value.
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
