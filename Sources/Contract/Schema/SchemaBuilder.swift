import JSON

/// Maker of JSON Schemas (draft 7) of the contract's types.
///
/// Types of the contract become named schemas, which others refer to. Params are closed and may
/// leave out what has a default; results are open and have what the server always writes. A type in
/// both has two schemas, and that of params ends in `Input`.
final class SchemaBuilder {
    struct Component {
        var schema: JSON
        /// Names of an object's members, in the order of their declaration.
        var members: [String] = []
    }

    private struct Use: Hashable {
        var type: ObjectIdentifier
        var isClosed: Bool
    }

    /// Whether the schemas to come are those of params.
    var isClosed = false
    private(set) var components: [String: Component] = [:]
    /// Members that a type looks for and never decodes, whatever is present.
    private(set) var unread: [String] = []
    private let texts: [String: String]
    private var made: [Use: JSON] = [:]
    private var owners: [String: ObjectIdentifier] = [:]

    /// Begins without schemas; `texts` describe types and their members, by their Swift names.
    init(texts: [String: String]) { self.texts = texts }

    /// Returns a type's name without its module, in one word.
    static func name(of type: Any.Type) -> String {
        path(of: type).split(separator: ".").joined()
    }

    /// Returns a type's name as the contract's sources write it.
    private static func path(of type: Any.Type) -> String {
        String(reflecting: type).replacing("Contract.", with: "")
    }

    /// Returns the description of a type or of one of its members, if it has any.
    func text(of type: Any.Type, member: String? = nil) -> String? {
        let path = Self.path(of: type)
        return texts[member.map { "\(path).\($0)" } ?? path]
    }

    /// Returns the schema of a type: a reference, unless the type is none of the contract's own.
    func schema<T: Decodable>(of type: T.Type) -> JSON {
        let use = Use(type: ObjectIdentifier(type), isClosed: isClosed)
        if let schema = made[use] { return schema }
        let schema = make(type)
        made[use] = schema
        return schema
    }

    private func make<T: Decodable>(_ type: T.Type) -> JSON {
        if let described = type as? any SchemaDescribed.Type {
            let schema = described.schema(self)
            guard let name = described.schemaName else { return schema }
            return refer(to: Component(schema: schema), name, of: type)
        }
        let name = Self.name(of: type)
        if let words = Self.words(of: type) {
            let schema: JSON = ["type": "string", "enum": .array(words.map(JSON.string))]
            return refer(to: Component(schema: schema), name, of: type)
        }
        let component = probe(type)
        guard String(reflecting: type).hasPrefix("Contract.") else { return component.schema }
        return refer(to: component, name, of: type)
    }

    /// Decodes a type and describes what it asked for.
    private func probe<T: Decodable>(_ type: T.Type) -> Component {
        let probes = Probes(of: type, self)
        guard probes.full.isObject else { return Component(schema: probes.full.valueSchema) }
        let written: [String: JSON]? =
            if let least = probes.least as? any Encodable, !isClosed,
                case .object(let members) = JSON(encoding: least)
            { members } else { nil }

        var properties: [String: JSON] = [:]
        var required: [JSON] = []
        for member in probes.members {
            if member.decoder.isUnread { unread.append("\(type).\(member.name)") }
            let isRequired = written.map { $0[member.name] != nil } ?? !member.isOptional
            if isRequired { required.append(.string(member.name)) }
            var schema = member.rules.reduce(member.decoder.valueSchema) { $0.adding($1, self) }
            if isClosed ? member.isOptional : written?[member.name] == .null {
                schema = schema.orNull
            }
            if isClosed, member.isOptional, member.decoder.isNullable {
                schema = schema.adding("x-null", "clears")
            }
            properties[member.name] = schema.adding(
                "description",
                text(of: type, member: member.name).map(JSON.string)
            )
        }
        let object: JSON = ["type": "object", "properties": .object(properties)]
        let schema = object.adding("required", required.isEmpty ? nil : .array(required))
            .adding("additionalProperties", isClosed ? false : nil)
        let names = probes.members.map(\.name)
        guard isClosed, !probes.alternatives.isEmpty else {
            return Component(schema: schema, members: names)
        }
        let choices = probes.alternatives.map { JSON.object(["required": [.string($0)]]) }
        return Component(schema: schema.adding("oneOf", .array(choices)), members: names)
    }

    /// Keeps a schema under its name, and returns the reference to it.
    private func refer<T: Decodable>(
        to component: Component,
        _ name: String,
        of type: T.Type
    ) -> JSON {
        let owner = owners[name] ?? ObjectIdentifier(type)
        precondition(owner == ObjectIdentifier(type), "two types are called \(name)")
        owners[name] = owner
        var component = component
        component.schema = component.schema.adding("description", description(of: type))
        let isOther = components[name].map { $0.schema != component.schema } ?? false
        let name = isOther ? "\(name)Input" : name
        components[name] = component
        return Self.reference(to: name)
    }

    /// Returns a type's description, which for an enum goes on with those of its words.
    private func description<T: Decodable>(of type: T.Type) -> JSON? {
        let words = (Self.words(of: type) ?? []).compactMap { word in
            text(of: type, member: word).map { "`\(word)`: \($0)" }
        }
        let lines = [text(of: type)].compactMap(\.self) + words
        return lines.isEmpty ? nil : .string(lines.joined(separator: "\n"))
    }

    private static let prefix = "#/components/schemas/"

    static func reference(to name: String) -> JSON { ["$ref": .string(prefix + name)] }

    /// Returns the name and the schema that a reference means.
    func component(_ reference: JSON) -> (name: String, component: Component)? {
        guard case .string(let path) = reference["$ref"] else { return nil }
        let name = String(path.dropFirst(Self.prefix.count))
        return components[name].map { (name, $0) }
    }
}

// Values for the types to read.
extension SchemaBuilder {
    /// Returns a value of a type, as small as its rules allow.
    func sample<T: Decodable>(of type: T.Type, rules: [SchemaDecoder.Rule]) throws -> T {
        for rule in rules {
            switch rule {
            case .integers(let range):
                return try JSON.integer(Int64(range.lowerBound)).decode(type, isClosed: false)
            case .numbers(let range):
                return try JSON.number(range.lowerBound).decode(type, isClosed: false)
            case .count, .bytes, .members: break
            }
        }
        if let described = type as? any SchemaDescribed.Type {
            return try described.sample.decode(type, isClosed: false)
        }
        if let first = Self.cases(of: type)?.first { return first }
        guard let least = Probes(of: type, self).least else {
            throw ([] as [any CodingKey]).refusal("have no sample")
        }
        return least
    }

    private static func cases<T>(of type: T.Type) -> [T]? {
        func all<C: CaseIterable>(_ type: C.Type) -> [T] { type.allCases.compactMap { $0 as? T } }
        return (type as? any CaseIterable.Type).map { all($0) }
    }

    private static func words<T>(of type: T.Type) -> [String]? {
        let words = cases(of: type)?.map { ($0 as? any RawRepresentable)?.rawValue as? String }
        guard let words, words.allSatisfy({ $0 != nil }) else { return nil }
        return words.compactMap(\.self)
    }
}

extension JSON {
    /// Returns the schema that takes null too.
    fileprivate var orNull: JSON {
        if self["$ref"] != nil || self["anyOf"] != nil || self["enum"] != nil {
            return ["anyOf": [self, ["type": "null"]]]
        }
        guard let type = self["type"] else { return self }
        return adding("type", [type, "null"])
    }
}
