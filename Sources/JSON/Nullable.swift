/// Optional member that is written as null, not left out, if it has no value.
@propertyWrapper public struct Nullable<Value: Hashable & Codable & Sendable>: Hashable, Sendable {
    public var wrappedValue: Value?

    public init(wrappedValue: Value?) { self.wrappedValue = wrappedValue }
}

extension Nullable: Codable {
    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        wrappedValue = container.decodeNil() ? nil : try container.decode(Value.self)
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        if let wrappedValue {
            try container.encode(wrappedValue)
        } else {
            try container.encodeNil()
        }
    }
}

// Synthesized `Decodable` conformances choose this overload for members of type `Nullable`.
extension KeyedDecodingContainer {
    public func decode<Value>(
        _ type: Nullable<Value>.Type,
        forKey key: Key
    ) throws -> Nullable<Value> {
        guard contains(key) else { return Nullable(wrappedValue: nil) }
        return try Nullable(from: superDecoder(forKey: key))
    }
}
