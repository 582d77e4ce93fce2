import Contract
import JSON
import Testing

@testable import ControlPlane

/// Judge of traffic by the schemas of the contract: whether accepted params, results and events are
/// what the description says.
struct ContractCheck {
    private static let document = ContractDocument(methods: Method.contracts).json
    private static let methods = byName("methods")
    private static let events = byName("x-events")
    /// Checks of one method or event; further ones of the same story say nothing new.
    private static let limit = 50

    private var counts: [String: Int] = [:]

    private static func byName(_ part: String) -> [String: JSON] {
        guard case .array(let entries)? = document[part] else { return [:] }
        return entries.reduce(into: [:]) { names, entry in
            if case .string(let name)? = entry["name"] { names[name] = entry }
        }
    }

    private mutating func isDue(_ name: String) -> Bool {
        counts[name, default: 0] += 1
        return counts[name, default: 0] <= Self.limit
    }

    /// Records an issue if an accepted call or its result is not as described.
    mutating func call(_ method: String, _ params: JSON, result: JSON) {
        guard isDue(method), let described = Self.methods[method] else { return }
        expect(params, described["x-params"], "\(method) params")
        expect(result, described["result"]?["schema"], "\(method) result")
    }

    /// Records an issue if an event is not as described.
    mutating func event(line: [UInt8]) {
        guard let params = (try? JSON(parsing: line))?["params"],
            case .string(let name)? = params["event"], isDue(name)
        else { return }
        expect(params, Self.document["x-event"], "\(name) line")
        expect(params["data"] ?? .null, Self.events[name]?["schema"], "\(name) data")
    }

    private func expect(_ value: JSON, _ schema: JSON?, _ path: String) {
        guard let schema else {
            Issue.record("\(path) has no schema")
            return
        }
        for fault in Self.faults(value, schema, path) { Issue.record("\(fault)") }
    }

    /// Returns the differences of a value from its schema; members without a schema are among them.
    static func faults(_ value: JSON, _ schema: JSON, _ path: String) -> [String] {
        if case .string(let reference)? = schema["$ref"] {
            let meant = reference.split(separator: "/").dropFirst()
                .reduce(document as JSON?) { $0?[String($1)] }
            return meant.map { faults(value, $0, path) } ?? ["\(path): no \(reference)"]
        }
        if case .array(let choices)? = schema["anyOf"] ?? schema["oneOf"],
            schema["properties"] == nil
        {
            let fits = choices.contains { faults(value, $0, path).isEmpty }
            return fits ? [] : ["\(path): \(value) fits none"]
        }
        if case .array(let words)? = schema["enum"], !words.contains(value) {
            return ["\(path): \(value) is not among \(words)"]
        }
        let kinds: [JSON] =
            switch schema["type"] {
            case .array(let kinds)?: kinds
            case let kind?: [kind]
            case nil: []
            }
        let fits = kinds.isEmpty || kinds.contains { isOf($0, value) }
        guard fits else { return ["\(path): \(value) is no \(kinds)"] }
        switch value {
        case .object(let members): return memberFaults(members, schema, path)
        case .array(let elements):
            let length = Double(elements.count)
            let range = rangeFaults(length, schema["minItems"], schema["maxItems"], path)
            guard let item = schema["items"] else { return range }
            return range + elements.flatMap { faults($0, item, "\(path)[]") }
        case .integer(let number):
            return rangeFaults(Double(number), schema["minimum"], schema["maximum"], path)
        case .number(let number):
            return rangeFaults(number, schema["minimum"], schema["maximum"], path)
        case .string(let text):
            return rangeFaults(Double(text.unicodeScalars.count), nil, schema["maxLength"], path)
        case .null, .bool: return []
        }
    }

    private static func isOf(_ kind: JSON, _ value: JSON) -> Bool {
        switch value {
        case .null: kind == "null"
        case .bool: kind == "boolean"
        case .integer: kind == "integer" || kind == "number"
        case .number(let number):
            kind == "number" || kind == "integer" && number.rounded() == number
        case .string: kind == "string"
        case .array: kind == "array"
        case .object: kind == "object"
        }
    }

    private static func memberFaults(
        _ members: [String: JSON],
        _ schema: JSON,
        _ path: String
    ) -> [String] {
        var found: [String] = []
        if case .array(let names)? = schema["required"] {
            for case .string(let name) in names where members[name] == nil {
                found.append("\(path): \(name) is missing")
            }
        }
        for (name, value) in members {
            if let known = schema["properties"]?[name] ?? schema["additionalProperties"],
                known != false
            {
                found += faults(value, known, "\(path).\(name)")
            } else if schema["properties"] != nil {
                found.append("\(path): \(name) has no schema")
            }
        }
        return found
    }

    private static func rangeFaults(
        _ number: Double,
        _ least: JSON?,
        _ most: JSON?,
        _ path: String
    ) -> [String] {
        let bounds = [least, most].map { bound -> Double? in
            switch bound {
            case .integer(let integer)?: Double(integer)
            case .number(let number)?: number
            case .null?, .bool?, .string?, .array?, .object?, nil: nil
            }
        }
        let fits = number >= bounds[0] ?? -.infinity && number <= bounds[1] ?? .infinity
        return fits ? [] : ["\(path): \(number) is out of range"]
    }
}
