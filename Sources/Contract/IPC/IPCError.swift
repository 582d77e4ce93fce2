public import JSON

/// Error of a refused call, as in the `error` member of a reply.
public struct IPCError: Error, Hashable, Sendable {
    /// Number of the error: from the vendor contract, from JSON-RPC, or from 4000 up.
    public var code: Int
    /// Text for people; may change between versions.
    public var message: String
    /// Stable kebab-case word for programs.
    public var reason: String
    /// Members of `data` other than `reason`.
    public var details: [String: JSON]

    public init(code: Int, message: String, reason: String, details: [String: JSON] = [:]) {
        self.code = code
        self.message = message
        self.reason = reason
        self.details = details
    }
}

extension IPCError: CustomStringConvertible {
    public var description: String { "\(message) (\(code) \(reason))" }
}

extension IPCError: Codable {
    private enum CodingKeys: CodingKey { case code, message, data }

    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        code = try container.decode(Int.self, forKey: .code)
        message = try container.decode(String.self, forKey: .message)
        try container.note(.members(ErrorData.self), .data)
        details = try container.decodeIfPresent([String: JSON].self, forKey: .data) ?? [:]
        if case .string(let word) = details.removeValue(forKey: "reason") {
            reason = word
        } else {
            reason = "unknown"
        }
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(code, forKey: .code)
        try container.encode(message, forKey: .message)
        var data = details
        data["reason"] = .string(reason)
        try container.encode(data, forKey: .data)
    }
}

/// Members of `data` that every error has; some have others besides.
struct ErrorData: Codable {
    /// Stable kebab-case word for programs: one of `x-errors`, each for one condition.
    var reason: String
}

/// Errors of JSON-RPC.
extension IPCError {
    /// Reports a line that is not JSON, or violates a limit of `JSON`.
    public static func parseError(_ cause: JSONSyntaxError) -> Self {
        Self(
            code: -32700,
            message: "not JSON: \(cause.cause) (byte \(cause.offset))",
            reason: "parse-error"
        )
    }

    /// Reports a line that is JSON, but not a JSON-RPC 2.0 request.
    public static func invalidRequest(_ cause: String) -> Self {
        Self(code: -32600, message: cause, reason: "invalid-request")
    }

    public static func noSuchMethod(_ method: String) -> Self {
        Self(
            code: -32601,
            message: "no method \"\(method.prefix(128))\"",
            reason: "no-such-method"
        )
    }

    /// Refuses one parameter; `parameter` is its path, as in `settings.roles[0].name`.
    public static func invalidParameter(_ parameter: String, _ message: String) -> Self {
        Self(
            code: -32602,
            message: message,
            reason: "invalid-params",
            details: ["parameter": .string(parameter)]
        )
    }

    /// Reports that sfud failed to execute a valid call, because of a defect or a dead worker.
    public static func internalError(_ cause: String) -> Self {
        Self(code: -32603, message: cause, reason: "internal-error")
    }
}

/// Errors of sfud.
extension IPCError {
    public static func noSuchRoom(_ room: RoomID) -> Self {
        Self(code: 4004, message: "no room \"\(room)\"", reason: "no-such-room")
    }

    public static func alreadyExists(_ room: RoomID) -> Self {
        Self(
            code: 4009,
            message: "room \"\(room)\" already exists",
            reason: "already-exists",
            details: ["room": .string(room.rawValue)]
        )
    }

    /// Reports a recording that never was, or that is no longer remembered.
    public static func noSuchRecording(_ recording: RecordingID) -> Self {
        Self(code: 4013, message: "no recording \"\(recording)\"", reason: "no-such-recording")
    }

    /// Reports an SDP error; `line` counts from 1, and is 0 if no single line is at fault.
    public static func badSDP(line: Int, cause: String) -> Self {
        Self(
            code: 4022,
            message: line > 0 ? "bad SDP in line \(line): \(cause)" : "bad SDP: \(cause)",
            reason: "bad-sdp",
            details: ["line": .integer(Int64(line)), "cause": .string(cause)]
        )
    }

    /// Reports an exceeded limit; `limit` is its name in `server.info`.
    public static func limitReached(_ limit: String, _ value: Int) -> Self {
        Self(
            code: 4029,
            message: "the limit of \(value) \(limit) is reached",
            reason: "limit-reached",
            details: ["limit": .string(limit), "value": .integer(Int64(value))]
        )
    }

    /// Reports that the program stays the one that it is; `detail` says why.
    public static func upgradeRefused(_ detail: String) -> Self {
        Self(
            code: 4505,
            message: "no upgrade: \(detail)",
            reason: "upgrade-refused",
            details: ["detail": .string(detail)]
        )
    }

    public static func draining() -> Self {
        Self(code: 4503, message: "the server takes no new rooms", reason: "draining")
    }
}

extension JSON {
    /// Decodes a params object; a key that `type` does not know is refused by name.
    ///
    /// - Throws: `-32602 invalid-params` with `parameter`, the path of the first invalid one.
    public func decodeParams<P: Decodable>(_ type: P.Type) throws(IPCError) -> P {
        try refusing { () throws(JSONMismatch) in try decode(type, isClosed: true) }
    }

    /// Decodes a result or an event's data, which may have members that `type` does not know.
    ///
    /// - Throws: `-32602 invalid-params` with the path of the mismatch.
    public func decode<T: Decodable>(_ type: T.Type) throws(IPCError) -> T {
        try refusing { () throws(JSONMismatch) in try decode(type, isClosed: false) }
    }

    private func refusing<T>(_ decode: () throws(JSONMismatch) -> T) throws(IPCError) -> T {
        do {
            return try decode()
        } catch {
            throw .invalidParameter(error.path, error.message)
        }
    }
}
