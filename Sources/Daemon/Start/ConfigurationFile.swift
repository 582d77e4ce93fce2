import JSON

extension JSON {
    /// Value as it would be written after a flag; `nil` unless a string or a number.
    fileprivate var flagText: String? {
        switch self {
        case .string(let text): text
        case .integer(let number): "\(number)"
        case .number(let number): Int(exactly: number).map(String.init) ?? "\(number)"
        case .array, .object, .bool, .null: nil
        }
    }

    /// Whole number, even if written with a decimal point or an exponent.
    fileprivate var wholeNumber: Int? {
        switch self {
        case .integer(let number): Int(exactly: number)
        case .number(let number): Int(exactly: number)
        case .string, .array, .object, .bool, .null: nil
        }
    }
}

extension Configuration {
    /// Applies the settings of a JSON5 text.
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

    private static func members(of text: [UInt8]) throws(ConfigurationError) -> [String: JSON] {
        guard String(validating: text, as: UTF8.self) != nil else {
            throw ConfigurationError(key: "config", reason: "the file is not UTF-8")
        }
        let value: JSON
        do {
            value = try JSON(parsingJSON5: text)
        } catch {
            let line = text[..<error.offset].count { $0 == UInt8(ascii: "\n") } + 1
            throw ConfigurationError(
                key: "config",
                reason: "the file is not valid JSON5: line \(line): \(error.cause)"
            )
        }
        guard case .object(let members) = value else {
            throw ConfigurationError(key: "config", reason: "the file must hold one object")
        }
        return members
    }

    private static func texts(
        _ key: ConfigurationKey,
        _ value: JSON
    ) throws(ConfigurationError) -> [String] {
        var texts: [String] = []
        let values: [JSON]
        if key.isList, case .array(let items) = value { values = items } else { values = [value] }
        for value in values {
            guard let text = value.flagText else {
                let expected = key.isList ? "text or a list of texts" : "text or a number"
                throw ConfigurationError(key: key.rawValue, reason: "must be \(expected)")
            }
            texts.append(text)
        }
        return texts
    }

    private mutating func apply(limits value: JSON) throws(ConfigurationError) {
        guard case .object(let members) = value else {
            throw ConfigurationError(key: "limits", reason: "must be an object")
        }
        for (name, value) in members.sorted(by: { $0.key < $1.key }) {
            guard let limit = ConfigurationLimit.all.first(where: { $0.name == name }) else {
                throw ConfigurationError(key: "limits.\(name)", reason: "unknown key")
            }
            guard let bound = value.wholeNumber, limit.range.contains(bound) else {
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
