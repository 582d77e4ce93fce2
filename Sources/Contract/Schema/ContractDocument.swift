package import JSON

/// The contract as an OpenRPC 1.3 document: methods, events and the schemas of their types.
package struct ContractDocument {
    private let builder: SchemaBuilder
    private let methods: [any IPCMethod.Type]

    /// Describes methods; `texts` describe the types, by their Swift names.
    package init(
        methods: [any IPCMethod.Type],
        texts: [String: String] = ContractTexts.all
    ) {
        builder = SchemaBuilder(texts: texts)
        self.methods = methods
    }

    /// The document.
    package var json: JSON {
        // Results come first: their schemas have the plain names.
        builder.isClosed = false
        let results = methods.map { result(of: $0) }
        let events = ContractEvents.all.map { event($0) }
        let line = builder.schema(of: IPCEvent.self)
        let error = builder.schema(of: IPCError.self)
        builder.isClosed = true
        var calls: [JSON] = []
        for (method, result) in zip(methods, results) { calls.append(call(method, result)) }
        return [
            "openrpc": "1.3.2",
            "info": [
                "title": "sfud", "version": .string("\(contractVersion)"),
                "description": .string(Self.description),
                "license": ["name": "Apache-2.0"],
            ],
            "methods": .array(calls),
            "x-event": line,
            "x-error": error,
            "x-events": .array(events),
            "x-errors": .array(ContractErrors.all.map(\.json)),
            "components": ["schemas": .object(builder.components.mapValues(\.schema))],
        ]
    }

    private static let description = """
        The IPC of sfud: JSON-RPC 2.0, one object a line, over a Unix-domain socket. \
        docs/ipc.md explains it. `x-events` lists the events: each is a line with the method \
        `event`, whose params are `x-event`, and `data` as its schema says. An error is `x-error`, \
        and `reason` in its `data` is the word to compare; `x-errors` lists these words.
        """

    private func result<Method: IPCMethod>(of method: Method.Type) -> JSON {
        let schema = builder.schema(of: Method.Result.self)
        let name = builder.component(schema)?.name ?? "result"
        return ["name": .string(name), "schema": schema]
    }

    private func call<Method: IPCMethod>(_ method: Method.Type, _ result: JSON) -> JSON {
        let params = builder.schema(of: Method.Params.self)
        let described: JSON = [
            "name": .string(method.name), "paramStructure": "by-name", "result": result,
            "x-params": params, "params": .array(list(params)),
        ]
        return described.adding(text: builder.text(of: method))
    }

    /// Returns the members of a params object, each described by a part of the object's schema.
    private func list(_ params: JSON) -> [JSON] {
        guard let (_, component) = builder.component(params), let path = params["$ref"],
            case .string(let path) = path
        else { return [] }
        var required: [JSON] = []
        if case .array(let names)? = component.schema["required"] { required = names }
        return component.members.map { name in
            [
                "name": .string(name), "required": .bool(required.contains(.string(name))),
                "schema": ["$ref": .string("\(path)/properties/\(name)")],
            ]
        }
    }

    private func event<Data: EventData>(_ data: Data.Type) -> JSON {
        let event: JSON = ["name": .string(data.event), "schema": builder.schema(of: data)]
        // The comment of an event begins with its name.
        let text = builder.text(of: data)?.trimmingPrefix("`\(data.event)`").drop { $0 != " " }
        return event.adding(text: text.map { $0.dropFirst().capitalized })
    }
}

extension JSON {
    /// Returns the object with a summary, the text's first sentence, and with the text if it has
    /// more.
    fileprivate func adding(text: String?) -> JSON {
        guard let text, let end = text.firstRange(of: ". ")?.lowerBound else {
            return text.flatMap { $0.isEmpty ? nil : $0 }.map { adding("summary", .string($0)) }
                ?? self
        }
        return adding("summary", .string("\(text[..<end])."))
            .adding("description", .string(text))
    }
}

extension Substring {
    fileprivate var capitalized: String { prefix(1).uppercased() + dropFirst() }
}

/// Descriptions of the contract's types and members: the doc comments of its sources.
package enum ContractTexts {
    /// Texts by the Swift names of what they describe, as in `RoomInfo.seq`.
    package static let all: [String: String] = {
        var texts: [String: String] = [:]
        var name = ""
        for line in table.split(separator: "\n") {
            if line.hasPrefix(" ") {
                texts[name, default: ""] += " " + line.drop { $0 == " " }
            } else if let end = line.firstIndex(of: ":") {
                name = String(line[..<end])
                texts[name] = String(line[end...].dropFirst(2))
            }
        }
        return texts
    }()
}
