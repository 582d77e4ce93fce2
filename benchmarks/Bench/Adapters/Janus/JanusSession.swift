import JSON
import WorkerInterface

/// A session of the Janus API whose handles all belong to the VideoRoom plugin.
struct JanusSession: Sendable {
    /// Id of one use of the plugin in its session: in a VideoRoom a transport, or none yet.
    typealias Handle = Int64

    private let connection: JanusConnection
    private let id: Int64

    /// Creates a session; it lasts until `destroy` or the connection's end.
    init(_ connection: JanusConnection) async throws {
        self.connection = connection
        id = try Self.id(in: try await connection.call("create"))
    }

    func attach() async throws -> Handle {
        let plugin: JSON = "janus.plugin.videoroom"
        return try Self.id(in: try await call("attach", ["plugin": plugin]))
    }

    func detach(_ handle: Handle) async throws {
        _ = try await call("detach", ["handle_id": .integer(handle)])
    }

    /// Waits until the plugin considers the handle's transport connected.
    func awaitConnected(_ handle: Handle) async throws {
        try await connection.awaitConnected(handle)
    }

    /// Ends the session with all its handles.
    func destroy() async throws { _ = try await call("destroy") }

    /// Sends a request to the plugin, with a session description if given.
    ///
    /// - Throws: `AdapterError` with the refusal of Janus or the plugin.
    func message(
        _ request: String,
        _ body: [String: JSON] = [:],
        by handle: Handle,
        _ description: (type: String, text: String)? = nil
    ) async throws -> JSON {
        var members: [String: JSON] = ["handle_id": .integer(handle)]
        members["body"] = .object(body.merging(["request": .string(request)]) { $1 })
        if let description {
            members["jsep"] = ["type": .string(description.type), "sdp": .string(description.text)]
        }
        return try await call("message", members)
    }

    private func call(_ kind: String, _ members: [String: JSON] = [:]) async throws -> JSON {
        try await connection.call(kind, members.merging(["session_id": .integer(id)]) { $1 })
    }

    private static func id(in reply: JSON) throws -> Int64 {
        guard let id = reply["data"]?["id"]?.integer else {
            throw AdapterError("Janus: a reply without an id")
        }
        return id
    }
}
