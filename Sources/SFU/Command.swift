/// What the control plane tells a worker; together with `Event`, all that passes between them.
package enum Command: Hashable, Sendable {
    /// Makes a transport, or brings it to what was agreed anew.
    ///
    /// Publications and slots that are no longer listed end.
    case configure(TransportID, TransportConfiguration)
    case close(TransportID)
    /// Opens or closes the publisher's gate: `false` drops its media from the next packet on.
    case gate(PublicationID, open: Bool)
    /// Says what a slot carries from now on; `nil`: nothing.
    case bind(SlotID, Binding?)
    /// Asks for an `Event.statistics` with this token.
    case report(token: UInt64)
    /// Everything before it has taken effect when `Event.fenced` with this epoch comes back.
    case fence(epoch: UInt64)
}

/// A slot's source.
package struct Binding: Hashable, Sendable {
    package var publication: PublicationID
    /// Named in the events about it; unique in the process.
    package var subscription: UInt64
    /// Whether this subscriber may have it now and wants it: `false` holds the slot, silent.
    package var open: Bool

    package init(publication: PublicationID, subscription: UInt64, open: Bool) {
        self.publication = publication
        self.subscription = subscription
        self.open = open
    }
}
