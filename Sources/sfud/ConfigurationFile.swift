import Foundation

/// What a JSON5 value is, before a key says what it should be.
enum ConfigurationValue: Decodable, Equatable {
    case text(String)
    case number(Double)
    case list([Self])
    case object([String: Self])
    case other

    init(from decoder: any Decoder) throws {
        if let object = try? decoder.container(keyedBy: AnyKey.self) {
            var members: [String: Self] = [:]
            for key in object.allKeys {
                members[key.stringValue] = try object.decode(Self.self, forKey: key)
            }
            self = .object(members)
        } else if var list = try? decoder.unkeyedContainer() {
            var items: [Self] = []
            while !list.isAtEnd { items.append(try list.decode(Self.self)) }
            self = .list(items)
        } else {
            let value = try decoder.singleValueContainer()
            if let text = try? value.decode(String.self) {
                self = .text(text)
            } else if let number = try? value.decode(Double.self) {
                self = .number(number)
            } else {
                self = .other
            }
        }
    }

    private struct AnyKey: CodingKey {
        var stringValue: String
        var intValue: Int? { nil }
        init(stringValue: String) { self.stringValue = stringValue }
        init?(intValue: Int) { nil }
    }

    /// A text or number as one would write it after a flag.
    fileprivate var flagText: String? {
        switch self {
        case .text(let text): text
        case .number(let number): Int(exactly: number).map(String.init) ?? "\(number)"
        case .list, .object, .other: nil
        }
    }
}

extension Configuration {
    /// Sets what a JSON5 text says.
    mutating func apply(file text: [UInt8]) throws(ConfigurationError) {
        var seen: Set<ConfigurationKey> = []
        for (name, value) in try Self.members(of: text).sorted(by: { $0.key < $1.key }) {
            if name == "limits" {
                try apply(limits: value)
                continue
            }
            guard let key = ConfigurationKey(fileKey: name) else {
                throw ConfigurationError(key: name, reason: "unknown key")
            }
            guard seen.insert(key).inserted else {
                throw ConfigurationError(key: key.rawValue, reason: "is given more than once")
            }
            try set(key, to: Self.texts(key, value))
        }
    }

    private static func members(
        of text: [UInt8]
    ) throws(ConfigurationError) -> [String: ConfigurationValue] {
        // Foundation's JSON5 reader traps on some of what is not UTF-8, and on half an exponent.
        guard String(validating: text, as: UTF8.self) != nil else {
            throw ConfigurationError(key: "config", reason: "the file is not UTF-8")
        }
        let decoder = JSONDecoder()
        decoder.allowsJSON5 = true
        // Foundation does not say where: only that, and an operator has the file at hand.
        guard !hasHalfExponent(text),
            let value = try? decoder.decode(ConfigurationValue.self, from: Data(text))
        else {
            throw ConfigurationError(key: "config", reason: "the file is not valid JSON5")
        }
        guard case .object(let members) = value else {
            throw ConfigurationError(key: "config", reason: "the file must hold one object")
        }
        return members
    }

    /// Whether a number ends with the sign of its exponent, outside of texts and comments.
    private static func hasHalfExponent(_ text: [UInt8]) -> Bool {
        let isDigit = { (byte: UInt8) in (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) }
        var rest = text[...]
        while let byte = rest.popFirst() {
            switch byte {
            case UInt8(ascii: "\""), UInt8(ascii: "'"):
                while let inside = rest.popFirst(), inside != byte {
                    if inside == UInt8(ascii: "\\") { rest = rest.dropFirst() }
                }
            case UInt8(ascii: "/") where rest.first == UInt8(ascii: "/"):
                rest = rest.drop { $0 != UInt8(ascii: "\n") && $0 != UInt8(ascii: "\r") }
            case UInt8(ascii: "/") where rest.first == UInt8(ascii: "*"):
                rest = rest.dropFirst()
                while let inside = rest.popFirst() {
                    if inside == UInt8(ascii: "*"), rest.first == UInt8(ascii: "/") { break }
                }
            case UInt8(ascii: "e"), UInt8(ascii: "E"):
                let before = text[..<(rest.startIndex - 1)].last
                guard let before, isDigit(before) || before == UInt8(ascii: "."),
                    rest.first == UInt8(ascii: "+") || rest.first == UInt8(ascii: "-")
                else { continue }
                let after = rest.dropFirst().first
                if after.map(isDigit) != true { return true }
            default: break
            }
        }
        return false
    }

    private static func texts(
        _ key: ConfigurationKey,
        _ value: ConfigurationValue
    ) throws(ConfigurationError) -> [String] {
        var texts: [String] = []
        let values: [ConfigurationValue]
        if key.isList, case .list(let items) = value { values = items } else { values = [value] }
        for value in values {
            guard let text = value.flagText else {
                let expected = key.isList ? "text or a list of texts" : "text or a number"
                throw ConfigurationError(key: key.rawValue, reason: "must be \(expected)")
            }
            texts.append(text)
        }
        return texts
    }

    private mutating func apply(limits value: ConfigurationValue) throws(ConfigurationError) {
        guard case .object(let members) = value else {
            throw ConfigurationError(key: "limits", reason: "must be an object")
        }
        for (name, value) in members.sorted(by: { $0.key < $1.key }) {
            guard let limit = ConfigurationLimit.all.first(where: { $0.name == name }) else {
                throw ConfigurationError(key: "limits.\(name)", reason: "unknown key")
            }
            guard case .number(let number) = value, let bound = Int(exactly: number),
                limit.range.contains(bound)
            else {
                let range = "\(limit.range.lowerBound) to \(limit.range.upperBound)"
                throw ConfigurationError(
                    key: "limits.\(name)",
                    reason: "must be a number from \(range)"
                )
            }
            limits[keyPath: limit.path] = bound
        }
    }
}
