import JSON

/// A type whose schema its `init(from:)` does not tell.
protocol SchemaDescribed: Decodable {
    /// Name among the contract's schemas; `nil` if the schema is written out at each use.
    static var schemaName: String? { get }
    /// A value's JSON; what decodes it takes it.
    static var sample: JSON { get }
    static func schema(_ builder: SchemaBuilder) -> JSON
}

extension SchemaDescribed {
    static var schemaName: String? { SchemaBuilder.name(of: Self.self) }
}

// Numbers, strings and JSON itself.

extension Bool: SchemaDescribed {
    static var schemaName: String? { nil }
    static var sample: JSON { false }
    static func schema(_ builder: SchemaBuilder) -> JSON { ["type": "boolean"] }
}

extension String: SchemaDescribed {
    static var schemaName: String? { nil }
    static var sample: JSON { "x" }
    static func schema(_ builder: SchemaBuilder) -> JSON { ["type": "string"] }
}

extension Double: SchemaDescribed {
    static var schemaName: String? { nil }
    static var sample: JSON { 1 }
    static func schema(_ builder: SchemaBuilder) -> JSON { ["type": "number"] }
}

extension SchemaDescribed where Self: FixedWidthInteger {
    static var schemaName: String? { nil }
    static var sample: JSON { 1 }

    static func schema(_ builder: SchemaBuilder) -> JSON {
        let kind = isSigned ? "int" : "uint"
        let schema: JSON = ["type": "integer", "format": .string("\(kind)\(bitWidth)")]
        return isSigned ? schema : schema.adding("minimum", 0)
    }
}

extension Int: SchemaDescribed {}
extension Int64: SchemaDescribed {}
extension UInt32: SchemaDescribed {}
extension UInt64: SchemaDescribed {}

extension JSON: SchemaDescribed {
    static var schemaName: String? { nil }
    static var sample: JSON { [:] }
    static func schema(_ builder: SchemaBuilder) -> JSON { [:] }

    /// Returns the object with one more member.
    func adding(_ name: String, _ value: JSON?) -> JSON {
        guard case .object(var members) = self, let value else { return self }
        members[name] = value
        return .object(members)
    }
}

extension Dictionary: SchemaDescribed where Key: Decodable, Value: Decodable {
    static var schemaName: String? { nil }
    static var sample: JSON { [:] }

    static func schema(_ builder: SchemaBuilder) -> JSON {
        let map: JSON = [
            "type": "object", "additionalProperties": builder.schema(of: Value.self),
        ]
        return Key.self == String.self
            ? map : map.adding("propertyNames", builder.schema(of: Key.self))
    }
}

// The contract's own.

extension Identifier: SchemaDescribed {
    /// `RoomID` and the like: the name of the thing, or of the alias where that is another.
    static var schemaName: String? {
        switch Kind.self {
        case is Role.Type: "RoleName"
        case is RoleChange.Type: "RoleRequestID"
        case is PublishRights.Type: "Permission"
        default: "\(Kind.self)ID"
        }
    }

    static var sample: JSON { "x" }

    static func schema(_ builder: SchemaBuilder) -> JSON {
        ["type": "string", "pattern": .string("^[A-Za-z0-9._:-]{1,\(byteLimit)}$")]
    }
}

extension Mid: SchemaDescribed {
    static var sample: JSON { "0" }

    static func schema(_ builder: SchemaBuilder) -> JSON {
        ["type": "string", "pattern": .string("^[!-~]{1,\(byteLimit)}$")]
    }
}

extension ShortText: SchemaDescribed {
    static var sample: JSON { "x" }

    static func schema(_ builder: SchemaBuilder) -> JSON {
        ["type": "string", "maxLength": .integer(Int64(byteLimit))]
    }
}

extension CustomItems: SchemaDescribed {
    static var sample: JSON { [:] }
    static func schema(_ builder: SchemaBuilder) -> JSON { ["type": "object"] }
}

extension Audience: SchemaDescribed {
    static var sample: JSON { "all" }

    static func schema(_ builder: SchemaBuilder) -> JSON {
        let all: JSON = ["type": "string", "enum": ["all"]]
        let list = builder.schema(of: [ParticipantID].self)
        return ["anyOf": [all, list, builder.schema(of: Others.self)]]
    }
}

extension Targets.Several: SchemaDescribed {
    static var sample: JSON { ["x"] }

    static func schema(_ builder: SchemaBuilder) -> JSON {
        let list = builder.schema(of: [ParticipantID].self)
            .adding(.count(0...Targets.countLimit), builder)
        return ["anyOf": [["type": "string", "enum": ["all"]], list]]
    }
}

extension EventPattern: SchemaDescribed {
    static var sample: JSON { "room.*" }

    static func schema(_ builder: SchemaBuilder) -> JSON {
        ["type": "string", "pattern": "^[A-Za-z.]{1,64}(\\.\\*)?$"]
    }
}

extension AudioRight: SchemaDescribed {
    static var sample: JSON { true }

    static func schema(_ builder: SchemaBuilder) -> JSON {
        ["anyOf": [builder.schema(of: Bool.self), builder.schema(of: Bounds.self)]]
    }
}

extension VideoRight: SchemaDescribed {
    static var sample: JSON { true }

    static func schema(_ builder: SchemaBuilder) -> JSON {
        ["anyOf": [builder.schema(of: Bool.self), builder.schema(of: Bounds.self)]]
    }
}

extension PageLimit: SchemaDescribed {
    static var sample: JSON { 1 }

    static func schema(_ builder: SchemaBuilder) -> JSON {
        builder.schema(of: Int.self).adding(.integers(range), builder)
    }
}

extension RequestedMode: SchemaDescribed {
    static var sample: JSON { .string(ParticipantMode.sendAndReceive.rawValue) }

    static func schema(_ builder: SchemaBuilder) -> JSON {
        let names = ParticipantMode.allCases.map { JSON.string($0.rawValue) }
        return ["type": "string", "enum": .array(names + ["CONFERENCE", "VIEWER"])]
    }
}

extension FrameRate: SchemaDescribed {
    static var sample: JSON { 1 }

    static func schema(_ builder: SchemaBuilder) -> JSON {
        builder.schema(of: Double.self).adding(.numbers(Limits.frameRate), builder)
    }
}

extension Priority: SchemaDescribed {
    static var sample: JSON { 1 }

    static func schema(_ builder: SchemaBuilder) -> JSON {
        builder.schema(of: Int.self).adding(.integers(Limits.priority), builder)
    }
}

extension ServerDescribe.Result: SchemaDescribed {
    static var sample: JSON { [:] }
    static func schema(_ builder: SchemaBuilder) -> JSON { ["type": "object"] }
}

extension JSON {
    /// Returns the schema with a rule that its type does not tell.
    func adding(_ rule: SchemaDecoder.Rule, _ builder: SchemaBuilder) -> JSON {
        switch rule {
        case .members(let type): builder.schema(of: type)
        case .integers(let range):
            adding("minimum", .integer(Int64(range.lowerBound)))
                .adding("maximum", .integer(Int64(range.upperBound)))
        case .numbers(let range):
            adding("minimum", .number(range.lowerBound))
                .adding("maximum", .number(range.upperBound))
        case .count(let range):
            adding("minItems", .integer(Int64(range.lowerBound)))
                .adding("maxItems", .integer(Int64(range.upperBound)))
        // A character has one byte or more.
        case .bytes(let most): adding("maxLength", .integer(Int64(most)))
        }
    }
}
