/// A JSON value (RFC 8259).
///
/// Whole numbers that fit `Int64` keep their exact value; every other number is a finite `Double`.
public enum JSON: Hashable, Sendable {
    case null
    case bool(Bool)
    case integer(Int64)
    case number(Double)
    case string(String)
    case array([JSON])
    case object([String: JSON])

    /// Type of the value, in words for an error message.
    package var kind: String {
        switch self {
        case .null: "null"
        case .bool: "a boolean"
        case .integer, .number: "a number"
        case .string: "a string"
        case .array: "an array"
        case .object: "an object"
        }
    }

    /// Returns the member of that name, or `nil` if this is no object or lacks it.
    public subscript(key: String) -> JSON? {
        guard case .object(let members) = self else { return nil }
        return members[key]
    }

    /// Whether arrays and objects are nested in more than so many levels.
    ///
    /// It looks no deeper than that, so a value of any depth costs no more stack.
    package func isNested(deeperThan levels: Int) -> Bool {
        switch self {
        case .null, .bool, .integer, .number, .string: false
        case .array(let elements):
            levels < 1 || elements.contains { $0.isNested(deeperThan: levels - 1) }
        case .object(let members):
            levels < 1 || members.values.contains { $0.isNested(deeperThan: levels - 1) }
        }
    }
}

extension JSON: Codable {
    public init(from decoder: any Decoder) throws {
        guard let tree = decoder as? TreeDecoder else {
            let context = DecodingError.Context(
                codingPath: decoder.codingPath,
                debugDescription: "a JSON value is decoded with JSON.decode only"
            )
            throw DecodingError.typeMismatch(JSON.self, context)
        }
        tree.markAllRead()
        self = tree.value
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        switch self {
        case .null: try container.encodeNil()
        case .bool(let value): try container.encode(value)
        case .integer(let value): try container.encode(value)
        case .number(let value): try container.encode(value)
        case .string(let value): try container.encode(value)
        case .array(let value): try container.encode(value)
        case .object(let value): try container.encode(value)
        }
    }
}

extension JSON: ExpressibleByStringLiteral, ExpressibleByIntegerLiteral,
    ExpressibleByBooleanLiteral, ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral
{
    public init(stringLiteral value: String) { self = .string(value) }
    public init(integerLiteral value: Int64) { self = .integer(value) }
    public init(booleanLiteral value: Bool) { self = .bool(value) }
    public init(arrayLiteral elements: JSON...) { self = .array(elements) }
    public init(dictionaryLiteral elements: (String, JSON)...) {
        self = .object(Dictionary(elements) { $1 })
    }
}
