public import Contract
import JSON

/// Reason why a call has no result.
public enum ClientError: Error, Hashable, Sendable {
    /// sfud refused the call; nothing has changed.
    case refused(IPCError)
    /// No daemon accepts connections at that path.
    case unreachable(path: String, cause: String)
    /// The connection ended before the reply: the call may or may not have been executed.
    case connectionLost
    /// The reply did not arrive in time: the call may or may not have been executed.
    case timeout
    /// The task was cancelled: the call may or may not have been executed.
    case cancelled
    /// Too many calls are pending, or the request is longer than a line or nested deeper than one
    /// may be: nothing was sent.
    case limit(String)
    /// A received line violates the contract.
    case protocolViolation(String)
}

extension ClientError: CustomStringConvertible {
    public var description: String {
        switch self {
        case .refused(let error): error.description
        case .unreachable(let path, let cause): "no sfud at \(path): \(cause)"
        case .connectionLost: "the connection to sfud ended before the reply"
        case .timeout: "sfud did not reply in time"
        case .cancelled: "the call was cancelled"
        case .limit(let what): what
        case .protocolViolation(let what): "sfud answered what it should not: \(what)"
        }
    }
}

extension ClientError {
    /// Params that make a line of more levels than sfud reads.
    static var nestedTooDeep: Self { .limit("the params are nested too deep") }
}

extension JSON {
    /// Makes the params of a call, which have what the caller attaches.
    ///
    /// - Throws: `ClientError.limit` if they are nested too deep.
    init(params: some Encodable) throws(ClientError) {
        do throws(JSONSyntaxError) {
            self = try JSON(converting: params)
        } catch {
            throw .nestedTooDeep
        }
    }
}
