public import JSON

/// A refusal, as it stands in the `error` member of a reply.
public struct IPCError: Error, Hashable, Sendable {
    /// The vendor's number where there is one, else JSON-RPC's own or one from 4000 up.
    public var code: Int
    /// For people; may change between versions.
    public var message: String
    /// For programs: a stable word in kebab case.
    public var reason: String
    /// What else there is to know, beside `reason` in `data`.
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

/// JSON-RPC's own errors.
extension IPCError {
    /// The line is not JSON, or not JSON that we take.
    public static func parseError(_ cause: JSONSyntaxError) -> Self {
        Self(
            code: -32700,
            message: "not JSON: \(cause.cause) (byte \(cause.offset))",
            reason: "parse-error"
        )
    }

    /// The line is JSON, but not a JSON-RPC 2.0 request.
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

    /// sfud could not do what it should have done; a defect, or a worker that is gone.
    public static func internalError(_ cause: String) -> Self {
        Self(code: -32603, message: cause, reason: "internal-error")
    }
}

/// sfud's own errors.
extension IPCError {
    public static func noSuchRoom(_ room: RoomID) -> Self {
        Self(code: 4004, message: "no room \"\(room)\"", reason: "no-such-room")
    }

    public static func noSuchParticipant(_ participant: ParticipantID) -> Self {
        Self(
            code: 4005,
            message: "no participant \"\(participant)\"",
            reason: "no-such-participant"
        )
    }

    public static func noSuchStream(_ stream: StreamID) -> Self {
        Self(code: 4006, message: "no stream \"\(stream)\"", reason: "no-such-stream")
    }

    public static func noSuchSubscription(_ subscription: SubscriptionID) -> Self {
        Self(
            code: 4007,
            message: "no subscription \"\(subscription)\"",
            reason: "no-such-subscription"
        )
    }

    /// `transport` is `nil` where none was named and the participant has none.
    public static func noSuchTransport(_ transport: TransportName?) -> Self {
        Self(
            code: 4008,
            message: transport.map { "no transport \"\($0)\"" } ?? "no transport",
            reason: "no-such-transport"
        )
    }

    /// `what` names the thing with its id, as in `room "r1"`.
    public static func alreadyExists(_ what: String) -> Self {
        Self(code: 4009, message: "\(what) already exists", reason: "already-exists")
    }

    public static func notPermitted(_ message: String) -> Self {
        Self(code: 4010, message: message, reason: "not-permitted")
    }

    /// A mid that no m-line of the participant carries, or that is no slot of that kind.
    public static func noSuchMid(_ mid: String) -> Self {
        Self(
            code: 4011,
            message: "no slot \"\(mid)\"",
            reason: "no-such-mid",
            details: ["mid": .string(mid)]
        )
    }

    /// `line` counts from 1; 0 where no single line is at fault.
    public static func badSDP(line: Int, cause: String) -> Self {
        Self(
            code: 4022,
            message: line > 0 ? "bad SDP in line \(line): \(cause)" : "bad SDP: \(cause)",
            reason: "bad-sdp",
            details: ["line": .integer(Int64(line)), "cause": .string(cause)]
        )
    }

    /// `limit` is its name as `server.info` has it.
    public static func limitReached(_ limit: String, _ value: Int) -> Self {
        Self(
            code: 4029,
            message: "the limit of \(value) \(limit) is reached",
            reason: "limit-reached",
            details: ["limit": .string(limit), "value": .integer(Int64(value))]
        )
    }

    public static func noFreeSlot() -> Self {
        Self(code: 4030, message: "no free slot fits the stream", reason: "no-free-slot")
    }

    /// A role that the room does not have.
    public static func noSuchRole(_ role: String) -> Self {
        Self(
            code: 4044,
            message: "role invalid",
            reason: "role-invalid",
            details: ["role": .string(role)]
        )
    }

    /// The call is right, but not now; `reason` may say more exactly what is in the way.
    public static func wrongState(_ message: String, reason: String = "wrong-state") -> Self {
        Self(code: 4091, message: message, reason: reason)
    }

    public static func draining() -> Self {
        Self(code: 4503, message: "the server takes no new rooms", reason: "draining")
    }
}
