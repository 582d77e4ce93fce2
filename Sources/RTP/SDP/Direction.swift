/// Media direction of an m-line from the view of the SDP's author (RFC 8866 §6.7).
public enum Direction: String, Hashable, Sendable, CaseIterable {
    case sendrecv, sendonly, recvonly, inactive

    public init(sends: Bool, receives: Bool) {
        switch (sends, receives) {
        case (true, true): self = .sendrecv
        case (true, false): self = .sendonly
        case (false, true): self = .recvonly
        case (false, false): self = .inactive
        }
    }

    public var sends: Bool { self == .sendrecv || self == .sendonly }
    public var receives: Bool { self == .sendrecv || self == .recvonly }

    /// Same direction from the other side's view.
    public var mirrored: Self { Self(sends: receives, receives: sends) }
}
