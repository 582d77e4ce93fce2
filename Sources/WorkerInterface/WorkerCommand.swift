package import RTP

/// What the control plane tells a worker; together with `Event`, all that passes between them.
package enum WorkerCommand: Hashable, Sendable {
    /// Makes a transport, or brings it to what was agreed anew.
    ///
    /// Publications and slots that are no longer listed end.
    case configure(TransportID, TransportConfiguration)
    case close(TransportID)
    /// Opens or closes the publisher's gate: `false` drops its media from the next packet on.
    case gate(PublicationID, open: Bool)
    /// Says what a slot carries from now on; `nil`: nothing.
    ///
    /// Where only the caps are others than before, the stream goes on.
    case bind(SlotID, Binding?)
    /// Says what a publisher's role allows of a publication from now on.
    case limit(PublicationID, LayerCap)
    /// Says whether a publication's owner is on the list of talkers, the pinned among them.
    case feature(PublicationID, Bool)
    /// Makes a publication that another worker feeds, or brings it to what was agreed anew.
    ///
    /// To its slots, gates and reports it is like any other; its media comes by a relay.
    case mirror(Mirror)
    case unmirror(PublicationID)
    /// Says to which mirrors a publication's packets are handed on, besides its own slots.
    ///
    /// The list is the whole of them; none twice.
    case relay(PublicationID, to: [RelayTarget])
    /// Hands a publication's packets to this mirror, just listed, only after it has asked for those
    /// that came before: it begins with the first words.
    case hold(PublicationID, for: RelayTarget)
    /// For the tap's thread alone, which has no media of its own.
    case tap(TapOrder)
    /// Asks for an `Event.statistics` with this token.
    case report(token: UInt64)
    /// Asks for an `Event.explained` with this token.
    case explain(SlotID, token: UInt64)
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
    /// What the subscriber wants at most.
    package var preference = LayerCap.none
    /// What its role lets it have at most.
    package var roleCap = LayerCap.none
    /// Which of a subscriber's videos is served first, 0 to 1000: the highest.
    package var priority = 0
    /// Whether its video may be switched off where the path is too thin for the lowest layer.
    package var mayFallBack = true
    /// What is still held of its sound since then goes out first, so that nobody misses the first
    /// syllable of who was heard to speak.
    package var from: Instant?

    package init(publication: PublicationID, subscription: UInt64, open: Bool) {
        self.publication = publication
        self.subscription = subscription
        self.open = open
    }
}

/// A publication as a worker sees it that is not its home.
package struct Mirror: Hashable, Sendable {
    /// What it is like; the id is the mirror's own, in the mirror's worker.
    package var configuration: PublicationConfiguration
    /// Where its media comes from, and where keyframe requests go.
    package var home: RelayTarget
    /// Its gate, as `Command.gate` changes it later.
    package var open: Bool
    /// It asks its home for what is held since then before it takes what comes live.
    package var from: Instant?

    package init(configuration: PublicationConfiguration, home: RelayTarget, open: Bool) {
        self.configuration = configuration
        self.home = home
        self.open = open
    }
}

/// A publication in another worker: where to packets are handed on, or where from they come.
package struct RelayTarget: Hashable, Sendable, BitwiseCopyable {
    package var worker: Int
    package var publication: PublicationID

    package init(worker: Int, publication: PublicationID) {
        self.worker = worker
        self.publication = publication
    }
}
