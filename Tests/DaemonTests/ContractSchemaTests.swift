import JSON
import Testing

@testable import Contract
@testable import ControlPlane

/// The schemas of params and their decoders agree.
@Suite struct ContractSchemaTests {
    /// One method's params, and the smallest that its decoder may take.
    struct Case: CustomTestStringConvertible, Sendable {
        var name: String
        var schema: JSON
        var least: [String: JSON]
        /// Decodes as the server does.
        var decode: @Sendable (JSON) throws(IPCError) -> Void

        var testDescription: String { name }

        init<M: IPCMethod>(_ method: M.Type) {
            name = method.name
            let builder = SchemaBuilder(texts: [:])
            builder.isClosed = true
            schema = builder.component(builder.schema(of: M.Params.self))?.component.schema ?? [:]
            let sample = try? builder.sample(of: M.Params.self, rules: [])
            if let sample, case .object(let members) = JSON(encoding: sample) {
                least = members
            } else {
                least = [:]
            }
            decode = { json throws(IPCError) in _ = try json.decodeParams(M.Params.self) }
        }

        var required: [String] {
            guard case .array(let names)? = schema["required"] else { return [] }
            return names.compactMap { if case .string(let name) = $0 { name } else { nil } }
        }

        var optional: [String] {
            guard case .object(let members)? = schema["properties"] else { return [] }
            return members.keys.filter { !required.contains($0) }.sorted()
        }

        /// Returns the reason of the refusal of params that differ from the least in one member.
        func refusal(with name: String, _ value: JSON?) -> String? {
            var members = least
            members[name] = value
            do throws(IPCError) {
                try decode(.object(members))
                return nil
            } catch {
                return error.reason
            }
        }
    }

    static let cases = Method.contracts.map { Case($0) }

    @Test(arguments: cases)
    func `what is required is missed, and nothing else`(_ method: Case) throws {
        #expect(throws: Never.self) { try method.decode(.object(method.least)) }
        #expect(Set(method.required).isSubset(of: method.least.keys))
        for name in method.required {
            #expect(method.refusal(with: name, nil) == "invalid-params", "\(name) is missing")
        }
    }

    @Test(arguments: cases)
    func `null unsets what is optional`(_ method: Case) {
        // One that is needed in the place of another is no case of this.
        for name in method.optional where method.least[name] == nil {
            #expect(method.refusal(with: name, .null) == nil, "\(name) is null")
        }
    }

    @Test(arguments: cases)
    func `unknown members and other types are refused`(_ method: Case) {
        #expect(method.refusal(with: "unknown", true) == "invalid-params")
        guard case .object(let schemas)? = method.schema["properties"] else { return }
        for (name, schema) in schemas where schema != [:] {
            // No parameter of the contract is a list of lists.
            #expect(method.refusal(with: name, [[]]) == "invalid-params", "\(name) is a list")
        }
    }

    @Test func `every member has a type`() {
        let builder = SchemaBuilder(texts: [:])
        func describe<M: IPCMethod>(_ method: M.Type) {
            builder.isClosed = false
            _ = builder.schema(of: M.Result.self)
            builder.isClosed = true
            _ = builder.schema(of: M.Params.self)
        }
        for method in Method.contracts { describe(method) }
        builder.isClosed = false
        for event in ContractEvents.all { _ = builder.schema(of: event) }
        #expect(builder.unread.isEmpty)
    }

    struct Shape: CustomTestStringConvertible, Sendable {
        var testDescription: String
        var path: [String]
        var expected: JSON
    }

    static let shapes = [
        Shape(
            testDescription: "a range of whole numbers",
            path: ["RoomSettingsChange", "properties", "maxHosts"],
            expected: [
                "type": ["integer", "null"], "format": "int64", "minimum": 1, "maximum": 100,
                "x-null": "clears",
            ]
        ),
        Shape(
            testDescription: "the length of a list",
            path: ["ParticipantDropParams", "properties", "participants"],
            expected: [
                "type": "array", "items": ["$ref": "#/components/schemas/ParticipantID"],
                "minItems": 0, "maxItems": 5_000,
            ]
        ),
        Shape(
            testDescription: "a map",
            path: ["TransportOfferParams", "properties", "sources"],
            expected: [
                "type": ["object", "null"],
                "propertyNames": ["$ref": "#/components/schemas/Mid"],
                "additionalProperties": ["$ref": "#/components/schemas/StreamSource"],
            ]
        ),
        Shape(
            testDescription: "a change that null clears",
            path: ["SubscriptionUpdateParams", "properties", "priority"],
            expected: [
                "anyOf": [["$ref": "#/components/schemas/Priority"], ["type": "null"]],
                "x-null": "clears",
            ]
        ),
        Shape(
            testDescription: "members of params that have defaults",
            path: ["RoleInput", "required"],
            expected: ["name"]
        ),
        Shape(
            testDescription: "the same members in results, which always have them",
            path: ["Role", "required"],
            expected: ["name", "publish", "subscribe", "permissions"]
        ),
        Shape(
            testDescription: "a member that is null rather than absent",
            path: ["SubscriptionExplainResult", "properties", "sent"],
            expected: ["anyOf": [["$ref": "#/components/schemas/SentLayer"], ["type": "null"]]]
        ),
        Shape(
            testDescription: "members of which one is needed",
            path: ["TargetsByParticipant", "oneOf"],
            expected: [["required": ["participant"]], ["required": ["participants"]]]
        ),
        Shape(
            testDescription: "an id",
            path: ["RoomID"],
            expected: ["type": "string", "pattern": "^[A-Za-z0-9._:-]{1,128}$"]
        ),
    ]

    @Test(arguments: shapes)
    func `a schema has what the type reads and writes`(_ shape: Shape) {
        let document = ContractDocument(methods: Method.contracts, texts: [:]).json
        let schemas = document["components"]?["schemas"]
        #expect(shape.path.reduce(schemas) { $0?[$1] } == shape.expected)
    }
}
