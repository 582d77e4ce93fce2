public import JSON

/// Ranges of numbers in params.
enum Limits {
    /// Width or height of a picture, in pixels.
    static let pixels = 1...16_384
    /// Frames a second.
    static let frameRate = 1.0...240.0
    /// Bits a second.
    static let bitrate = 1_000...1_000_000_000
    /// Subscriptions of higher priority are served first.
    static let priority = 0...1_000
}

extension KeyedDecodingContainer {
    func refusal(_ key: Key, _ message: String) -> JSONMismatch {
        (codingPath + [NamedKey(key.stringValue)]).refusal(message)
    }

    /// Whether a member is absent or null, which mean the same.
    func isAbsent(_ key: Key) throws -> Bool { try !contains(key) || decodeNil(forKey: key) }

    /// Decodes an optional whole number and checks its range.
    func integer(in range: ClosedRange<Int>, _ key: Key) throws -> Int? {
        try note(.integers(range), key)
        guard let value = try decodeIfPresent(Int.self, forKey: key) else { return nil }
        guard range.contains(value) else {
            throw refusal(key, "must be \(range.lowerBound) to \(range.upperBound)")
        }
        return value
    }

    /// Decodes a change of a whole number and checks its range; null clears the number.
    func change(in range: ClosedRange<Int>, _ key: Key) throws -> Change<Int> {
        try note(.integers(range), key)
        let change = try decode(Change<Int>.self, forKey: key)
        if case .set(let value) = change, !range.contains(value) {
            throw refusal(key, "must be \(range.lowerBound) to \(range.upperBound)")
        }
        return change
    }

    /// Decodes an optional number and checks its range.
    func number(in range: ClosedRange<Double>, _ key: Key) throws -> Double? {
        try note(.numbers(range), key)
        guard let value = try decodeIfPresent(Double.self, forKey: key) else { return nil }
        guard range.contains(value) else {
            throw refusal(key, "must be \(range.lowerBound) to \(range.upperBound)")
        }
        return value
    }
}

/// Opaque JSON object that a signalling server attaches to a room, a participant or a stream.
///
/// It has at most 65,536 bytes as JSON, and 32 levels of nesting.
public struct CustomItems: Codable, Hashable, Sendable {
    /// Longest encoding as JSON, in bytes.
    public static let byteLimit = 65_536

    public var value: JSON

    public init(_ members: [String: JSON]) { value = .object(members) }

    public init(from decoder: any Decoder) throws {
        value = try JSON(from: decoder)
        guard case .object = value else { throw decoder.refusal("must be an object") }
        if let cause = value.cause(toRefuseMoreThan: Self.byteLimit) {
            throw decoder.refusal(cause)
        }
    }

    public func encode(to encoder: any Encoder) throws { try value.encode(to: encoder) }
}

extension JSON {
    /// Deepest nesting of what callers attach: `custom` objects and payloads.
    ///
    /// sfud's lines have these at deeper places than the calls that brought them, and a line has
    /// at most `depthLimit` levels in all.
    public static let attachedDepthLimit = 32

    /// Returns why a caller may not attach this value; `nil` if it may.
    func cause(toRefuseMoreThan byteLimit: Int) -> String? {
        if isNested(deeperThan: Self.attachedDepthLimit) {
            return "is nested deeper than \(Self.attachedDepthLimit) levels"
        }
        return JSON.encoded(self).count > byteLimit ? "is longer than \(byteLimit) bytes" : nil
    }
}

extension KeyedDecodingContainer {
    /// Decodes a list, and checks its length and that no element occurs twice.
    func list<Element: Decodable & Hashable>(
        _ key: Key,
        _ counts: ClosedRange<Int>
    ) throws -> [Element] {
        try note(.count(counts), key)
        let list = try decode([Element].self, forKey: key)
        guard counts.contains(list.count) else {
            throw refusal(
                key,
                "must have \(counts.lowerBound) to \(counts.upperBound) elements"
            )
        }
        guard Set(list).count == list.count else { throw refusal(key, "names something twice") }
        return list
    }
}
