public import JSON

/// What a caller matches a reply by.
public enum RequestID: Hashable, Sendable {
    case integer(Int64)
    /// At most 256 bytes.
    case string(String)
}

extension RequestID {
    public static let byteLimit = 256

    /// Returns `nil` for what is no id: null, a fraction, a boolean, a long string, a container.
    init?(_ json: JSON) {
        switch json {
        case .integer(let integer): self = .integer(integer)
        case .string(let string) where string.utf8.count <= Self.byteLimit: self = .string(string)
        default: return nil
        }
    }
}

/// One call, as a line brought it.
public struct IPCRequest: Hashable, Sendable {
    public var id: RequestID
    public var method: String
    /// An object; empty where the call has none.
    public var params: JSON

    public init(id: RequestID, method: String, params: JSON = [:]) {
        self.id = id
        self.method = method
        self.params = params
    }

    /// A line of the IPC, in bytes, without its newline.
    public static let lineLimit = 1 << 20

    /// Reads one line, with or without its newline.
    ///
    /// Every line is answered once, so a notification (a call without an id) is refused as an
    /// invalid request: nobody would learn whether it was taken.
    ///
    /// - Throws: `IPCRefusal`, which is the answer to the line.
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

    /// The params as a method has them; see `JSON.decodeParams`.
    public func params<P: Decodable>(_ type: P.Type) throws(IPCError) -> P {
        try params.decodeParams(type)
    }

    /// One line without its newline.
    public func encoded() -> [UInt8] {
        var writer = JSONWriter()
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

/// The answer to a line that is no request.
public struct IPCRefusal: Error, Hashable, Sendable {
    /// As far as it could be read.
    public var id: RequestID?
    public var error: IPCError

    public init(id: RequestID?, error: IPCError) {
        self.id = id
        self.error = error
    }

    /// One line without its newline.
    public func encoded() -> [UInt8] { IPCReply.encoded(id: id, error: error) }
}
