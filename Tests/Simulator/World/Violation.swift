/// Invariants that hold at every step of every history.
package enum Invariant: String, CaseIterable {
    /// Nothing leaves after the reply to the call that revoked the right to it.
    case rights
    /// Nobody receives media that was sent in another room.
    case rooms
    /// Nobody receives media without a subscription.
    case subscriptions
    /// No key and packet index ever carries two packets.
    case indices
    /// A retransmission equals the packet sent before.
    case retransmissions
    /// Nothing is forwarded to a viewer twice under two numbers.
    case repetition
    /// Output can be decrypted and parsed, and goes to somebody.
    case readable
    /// Every received packet was forwarded, or dropped with a counted cause.
    case accounting
    /// The events of a room are numbered without gaps on every connection.
    case events
    /// Every call is answered once, and to its caller.
    case replies
    /// An ended room gives back all its memory.
    case memory
    /// Media goes only to an address that the peer has proven recently.
    case consent
    /// A transport's use of a worker's memory and time is bounded.
    case bounds
    /// Without faults no audio is lost, whatever other participants do.
    case losses
    /// Within five seconds of the last fault everybody receives what they may.
    case liveness
    /// Calls that must succeed do, and calls that must fail fail.
    case answers
}

/// A violated invariant.
package struct Violation: Error, CustomStringConvertible {
    package var invariant: Invariant
    package var text: String
    /// Virtual seconds since the beginning.
    var seconds: Double

    package var description: String { "\(invariant.rawValue) after \(seconds) s: \(text)" }
}
