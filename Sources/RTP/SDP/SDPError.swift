/// Why a session description was refused.
public struct SDPError: Error, Hashable, Sendable {
    public enum Reason: Hashable, Sendable {
        /// The text breaks a rule of the RFCs or of sfud's own limits on text.
        case malformed
        /// The text is sound, but no identifier is left for what it asks for.
        case exhausted
    }

    /// Counted from 1; the last one where something is missing, 0 where no line is to blame.
    public var line: Int
    /// One clause without secrets, for people.
    public var cause: String
    public var reason: Reason

    public init(line: Int, cause: String, reason: Reason = .malformed) {
        self.line = line
        self.cause = cause
        self.reason = reason
    }
}
