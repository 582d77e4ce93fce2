/// Decoder of a `JSON` value that records which keys the type reads.
///
/// A closed object therefore needs no list of its keys: the keys that the type decodes are the
/// list.
final class TreeDecoder: Decoder {
    let value: JSON
    let isClosed: Bool
    /// Decoder of the value around this one, and the place there; `nil` for the outermost value.
    ///
    /// The path is made from them only where something is wrong.
    private let parent: (decoder: TreeDecoder, key: NamedKey)?
    private var readKeys: Set<String> = []
    private var isFullyRead = false

    /// Information of the outermost value's decoder.
    private let information: [CodingUserInfoKey: Any]

    var userInfo: [CodingUserInfoKey: Any] { parent?.decoder.userInfo ?? information }

    /// Makes a decoder of an outermost value.
    init(_ value: JSON, isClosed: Bool, _ information: [CodingUserInfoKey: Any] = [:]) {
        self.value = value
        self.isClosed = isClosed
        self.information = information
        parent = nil
    }

    /// Makes a decoder of a value within another one's.
    init(_ value: JSON, at key: NamedKey, in parent: TreeDecoder) {
        self.value = value
        isClosed = parent.isClosed
        information = [:]
        self.parent = (parent, key)
    }

    /// Makes another decoder of the same value.
    init(_ other: TreeDecoder) {
        value = other.value
        isClosed = other.isClosed
        information = other.information
        parent = other.parent
    }

    var codingPath: [any CodingKey] {
        guard let parent else { return [] }
        return parent.decoder.codingPath + [parent.key]
    }

    /// Decodes the complete value and refuses unknown members if closed.
    ///
    /// - Throws: `JSONMismatch` that names the parameter; whatever else the type throws.
    func decode<T: Decodable>(_ type: T.Type) throws -> T {
        let decoded = try T(from: self)
        try refuseUnreadKeys()
        return decoded
    }

    func markRead(_ key: String) { if isClosed { readKeys.insert(key) } }

    func markAllRead() { isFullyRead = true }

    private func refuseUnreadKeys() throws {
        guard isClosed, !isFullyRead, case .object(let members) = value,
            let unknown = members.keys.filter({ !readKeys.contains($0) }).min()
        else { return }
        let path = codingPath + [NamedKey(String(unknown.prefix(128)))]
        throw JSONMismatch(
            path: path.parameter,
            message: "unknown parameter \"\(path.parameter)\""
        )
    }

    func container<Key: CodingKey>(keyedBy: Key.Type) throws -> KeyedDecodingContainer<Key> {
        guard case .object(let members) = value else { throw refusal("must be an object") }
        return KeyedDecodingContainer(KeyedTree(decoder: self, members: members))
    }

    func unkeyedContainer() throws -> any UnkeyedDecodingContainer {
        guard case .array(let elements) = value else { throw refusal("must be an array") }
        return UnkeyedTree(decoder: self, elements: elements)
    }

    func singleValueContainer() throws -> any SingleValueDecodingContainer {
        SingleTree(decoder: self)
    }
}

extension TreeDecoder {
    var bool: Bool {
        get throws {
            guard case .bool(let bool) = value else { throw refusal("must be a boolean") }
            return bool
        }
    }

    var string: String {
        get throws {
            guard case .string(let string) = value else { throw refusal("must be a string") }
            return string
        }
    }

    var double: Double {
        get throws {
            switch value {
            case .integer(let integer): return Double(integer)
            case .number(let number): return number
            case .null, .bool, .string, .array, .object: throw refusal("must be a number")
            }
        }
    }

    /// Returns a whole number, also if written as `1.0`.
    func integer<T: FixedWidthInteger>(_ type: T.Type) throws -> T {
        switch value {
        case .integer(let integer):
            guard let exact = T(exactly: integer) else { throw refusal("is out of range") }
            return exact
        case .number(let number):
            guard number.rounded() == number else { throw refusal("must be an integer") }
            guard number.magnitude <= 9_007_199_254_740_992, let exact = T(exactly: number) else {
                throw refusal("is out of range")
            }
            return exact
        case .null, .bool, .string, .array, .object: throw refusal("must be an integer")
        }
    }
}

/// Mismatch between a value and the type it is decoded as.
package struct JSONMismatch: Error, Hashable, Sendable {
    /// Path from the outermost value, as in `settings.roles[0].name`; empty: that value.
    package var path: String
    package var message: String
}

extension JSON {
    /// Decodes a value as `type`; where `isClosed`, members that `type` does not know are refused.
    ///
    /// The types find `information` in their decoders.
    ///
    /// - Throws: The first mismatch.
    package func decode<T: Decodable>(
        _ type: T.Type,
        isClosed: Bool,
        _ information: [CodingUserInfoKey: Any] = [:]
    ) throws(JSONMismatch) -> T {
        do {
            return try TreeDecoder(self, isClosed: isClosed, information).decode(type)
        } catch let mismatch as JSONMismatch {
            throw mismatch
        } catch DecodingError.dataCorrupted(let context) {
            // A `RawRepresentable` enum has no such case.
            throw context.codingPath.refusal("has a value that is not known")
        } catch {
            throw JSONMismatch(path: "", message: "params do not fit: \(error)")
        }
    }
}
