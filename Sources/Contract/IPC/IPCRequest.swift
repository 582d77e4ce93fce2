public import JSON

/// Id that matches a reply to its request.
public enum RequestID: Hashable, Sendable {
    case integer(Int64)
    /// At most 256 bytes.
    case string(String)
}

extension RequestID {
    public static let byteLimit = 256

    /// Returns `nil` for an invalid id: null, a fraction, a boolean, a long string, a container.
    init?(_ json: JSON) {
        switch json {
        case .integer(let integer): self = .integer(integer)
        case .string(let string) where string.utf8.count <= Self.byteLimit: self = .string(string)
        case .null, .bool, .number, .string, .array, .object: return nil
        }
    }
}

/// One call as received in a line.
public struct IPCRequest: Hashable, Sendable {
    public var id: RequestID
    public var method: String
    /// An object; empty if the call has no params.
    public var params: JSON

    public init(id: RequestID, method: String, params: JSON = [:]) {
        self.id = id
        self.method = method
        self.params = params
    }

    /// Longest line on the IPC, in bytes, without its newline.
    public static let lineLimit = 1 << 20

    /// Parses one line, with or without its newline.
    ///
    /// Every line gets one reply, so a notification (a call without an id) is refused as an invalid
    /// request: its sender could not learn whether it succeeded.
    ///
    /// - Throws: `IPCRefusal`, the reply to the line.
    public init(line: [UInt8]) throws(IPCRefusal) {
        let json: JSON
        do throws(JSONSyntaxError) {
            json = try JSON(parsing: line)
        } catch {
            throw IPCRefusal(id: nil, error: .parseError(error))
        }
        guard case .object(let members) = json else {
            let isBatch = if case .array = json { true } else { false }
            let cause = isBatch ? "batches are not taken" : "a request is an object"
            throw IPCRefusal(id: nil, error: .invalidRequest(cause))
        }
        let id = members["id"].flatMap(RequestID.init)
        guard members["jsonrpc"] == "2.0" else {
            throw IPCRefusal(id: id, error: .invalidRequest("jsonrpc must be \"2.0\""))
        }
        guard let id else {
            let cause = "id must be an integer or a string of at most 256 bytes"
            throw IPCRefusal(id: nil, error: .invalidRequest(cause))
        }
        guard case .string(let method) = members["method"] else {
            throw IPCRefusal(id: id, error: .invalidRequest("method must be a string"))
        }
        let params = members["params"] ?? [:]
        guard case .object = params else {
            throw IPCRefusal(id: id, error: .invalidParameter("", "params must be an object"))
        }
        self.init(id: id, method: method, params: params)
    }

    /// Decodes the params; see `JSON.decodeParams`.
    public func params<P: Decodable>(_ type: P.Type) throws(IPCError) -> P {
        try params.decodeParams(type)
    }

    /// Returns the line of the request, without its newline.
    public func encoded() -> [UInt8] {
        let writer = JSONWriter()
        writer.raw("{\"jsonrpc\":\"2.0\",\"id\":")
        writer.id(id)
        writer.raw(",\"method\":")
        writer.string(method)
        writer.raw(",\"params\":")
        writer.value(params)
        writer.raw("}")
        return writer.bytes
    }
}

/// The reply to a line that is not a valid request.
public struct IPCRefusal: Error, Hashable, Sendable {
    /// `nil` if it could not be read.
    public var id: RequestID?
    public var error: IPCError

    public init(id: RequestID?, error: IPCError) {
        self.id = id
        self.error = error
    }

    /// Returns the line of the reply, without its newline.
    public func encoded() -> [UInt8] { IPCReply.encoded(id: id, error: error) }
}
