/// What must hold at every step of every history.
package enum Invariant: String, CaseIterable {
    /// Nothing leaves after the reply to the call that took the right to it away.
    case rights
    /// Nobody gets what was sent in another room.
    case rooms
    /// Nobody gets what they have never asked for.
    case subscriptions
    /// No key and packet index ever carries two packets.
    case indices
    /// What is sent again is what was sent.
    case retransmissions
    /// Nothing is forwarded to a viewer twice under two numbers.
    case repetition
    /// What is sent can be decrypted and read, and goes to somebody.
    case readable
    /// Every packet that came in was forwarded, or dropped for a cause that was counted.
    case accounting
    /// The events of a room are numbered without gaps on every connection.
    case events
    /// Every call is answered once, and to who made it.
    case replies
    /// What a room took is given back when it has ended.
    case memory
    /// Media goes only where the peer has proved to be, and not for long after the last proof.
    case consent
    /// Bounds what a transport makes a worker keep and do.
    case bounds
    /// While nothing fails nobody loses sound, whatever somebody else does.
    case losses
    /// When the faults stop, everybody sees and hears within five seconds what they may.
    case liveness
    /// Calls that must succeed do, and those that must not do not.
    case answers
}

/// That something did not hold.
package struct Violation: Error, CustomStringConvertible {
    package var invariant: Invariant
    package var text: String
    /// Virtual seconds from the beginning.
    var seconds: Double

    package var description: String { "\(invariant.rawValue) after \(seconds) s: \(text)" }
}
