/// CallError of a session description.
public struct SDPError: Error, Hashable, Sendable {
    public enum Reason: Hashable, Sendable {
        /// The text breaks a rule of the RFCs or one of sfud's limits on text.
        case malformed
        /// The text is valid, but no identifier is left for its content.
        case exhausted
    }

    /// Line number from 1; the last line if something is missing, 0 if no line is at fault.
    public var line: Int
    /// Explanation for people: one clause without secrets.
    public var cause: String
    public var reason: Reason

    public init(line: Int, cause: String, reason: Reason = .malformed) {
        self.line = line
        self.cause = cause
        self.reason = reason
    }
}
