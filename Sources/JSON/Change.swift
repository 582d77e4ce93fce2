/// A parameter of an update: an absent one keeps the value, null clears it.
public enum Change<Value: Hashable & Codable & Sendable>: Hashable, Sendable {
    case keep
    case clear
    case set(Value)

    /// Returns the value after the change to `old`.
    public func applied(to old: Value?) -> Value? {
        switch self {
        case .keep: old
        case .clear: nil
        case .set(let value): value
        }
    }
}

extension Change: Codable {
    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        self = container.decodeNil() ? .clear : .set(try container.decode(Value.self))
    }

    /// Encodes `keep` as null too, because a value outside an object cannot be left out.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        if case .set(let value) = self {
            try container.encode(value)
        } else {
            try container.encodeNil()
        }
    }
}

// Synthesized `Codable` conformances choose these overloads for members of type `Change`.
extension KeyedDecodingContainer {
    public func decode<Value>(
        _ type: Change<Value>.Type,
        forKey key: Key
    ) throws -> Change<Value> {
        guard contains(key) else { return .keep }
        return try Change(from: superDecoder(forKey: key))
    }
}

extension KeyedEncodingContainer {
    public mutating func encode<Value>(_ change: Change<Value>, forKey key: Key) throws {
        switch change {
        case .keep: break
        case .clear: try encodeNil(forKey: key)
        case .set(let value): try encode(value, forKey: key)
        }
    }
}
