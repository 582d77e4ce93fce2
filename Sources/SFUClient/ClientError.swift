public import Contract

/// Why a call has no result.
public enum ClientError: Error, Hashable, Sendable {
    /// sfud refused the call; nothing has changed.
    case refused(IPCError)
    /// There is no daemon at that path.
    case unreachable(path: String, cause: String)
    /// The connection ended before the reply: the call may or may not have been done.
    case connectionLost
    /// The reply did not come in time: the call may or may not have been done.
    case timeout
    /// The task was cancelled: the call may or may not have been done.
    case cancelled
    /// Too much is under way, or the params are longer than a line: nothing was sent.
    case limit(String)
    /// What came is not what the contract says.
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
