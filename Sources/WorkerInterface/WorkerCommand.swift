package import RTP

/// Command from the control plane to a worker.
///
/// `Command` and `Event` are all that passes between the two.
package enum WorkerCommand: Hashable, Sendable {
    /// Creates a transport, or updates it to the latest negotiated configuration.
    ///
    /// Publications and slots that are no longer listed are removed.
    case configure(TransportID, TransportConfiguration)
    case close(TransportID)
    /// Continues a transport, just configured, where an earlier process left it.
    ///
    /// If that is impossible, the transport ends with a timeout. One that was not connected as far
    /// as the control plane knew may have been so in the worker; if not, it stays as it is.
    case resume(TransportID, wasConnected: Bool)
    /// The transports of all workers have been resumed, and media may flow; what the earlier
    /// process left is no longer needed.
    case endResumption
    /// Media may flow, though some transports are resumed later: what the earlier process left is
    /// still needed, until `endResumption`.
    case postponeResumption
    /// Opens or closes the publication's gate: `false` drops its media from the next packet on.
    case gate(PublicationID, open: Bool)
    /// Sets the source of a slot; `nil` detaches it.
    ///
    /// The stream continues without interruption if only the limits changed.
    case bind(SlotID, Binding?)
    /// Sets the highest layer of a publication that the publisher's role allows.
    case limit(PublicationID, LayerCap)
    /// Sets whether a publication's owner is an active speaker or pinned.
    case feature(PublicationID, Bool)
    /// Creates or updates a publication that is fed by another worker.
    ///
    /// Slots, gates and reports treat it like any other publication; its media arrives by relay.
    case mirror(Mirror)
    case unmirror(PublicationID)
    /// Sets the mirrors that a publication's packets are relayed to, besides its own slots.
    ///
    /// The list replaces the previous one and contains no duplicates.
    case relay(PublicationID, to: [RelayTarget])
    /// Delays relaying to this newly listed mirror until it has asked for the audio held since an
    /// earlier time, so that it starts with the first words.
    case hold(PublicationID, for: RelayTarget)
    /// Order for the recorder thread only, which serves recordings, live streams and RTP outputs
    /// and has no transports of its own.
    case tap(OutputCommand)
    /// Order for the link thread only, which exchanges media with other nodes.
    case link(LinkOrder)
    /// Lets a publication's gate be open under the lease of a home at another node only; `nil`:
    /// under none any longer. In place of another lease it counts once it has begun, or the other
    /// one is over.
    case lease(PublicationID, of: Int?)
    /// Requests an `Event.statistics` with this token.
    case report(token: UInt64)
    /// Requests an `Event.statistics` of these transports and their media alone.
    case reportTransports([TransportID], token: UInt64)
    /// Requests an `Event.explained` with this token.
    case explain(SlotID, token: UInt64)
    /// Requests an `Event.fenced` with this epoch, which confirms that all earlier commands have
    /// taken effect.
    case fence(epoch: UInt64)

    /// Whether it only asks for figures, as is done at intervals.
    package var isQuestion: Bool {
        switch self {
        case .report, .reportTransports, .explain: true
        case .configure, .close, .resume, .endResumption, .postponeResumption, .gate, .bind, .limit,
            .feature, .mirror, .unmirror, .relay, .hold, .tap, .link, .lease, .fence:
            false
        }
    }
}

/// Source of a slot, with the subscriber's limits.
package struct Binding: Hashable, Sendable, Codable {
    package var publication: PublicationID
    /// Subscription identifier, unique in the process, named in events about it.
    package var subscription: UInt64
    /// Whether the subscriber is allowed to receive the source and wants it; `false` keeps the slot
    /// bound but silent.
    package var open: Bool
    /// Highest layer that the subscriber asks for.
    package var preference = LayerCap.none
    /// Highest layer that the subscriber's role allows.
    package var roleCap = LayerCap.none
    /// Priority among the subscriber's videos, 0 to 1000; the highest is served first.
    package var priority = 0
    /// Whether the video may be switched off when the path cannot carry its lowest layer.
    package var mayFallBack = true
    /// Time since which held audio is replayed before live packets, so that the first syllable of a
    /// new speaker is not missed.
    package var from: Instant?

    package init(publication: PublicationID, subscription: UInt64, open: Bool) {
        self.publication = publication
        self.subscription = subscription
        self.open = open
    }
}

/// Publication as seen by a worker that is not its home.
package struct Mirror: Hashable, Sendable, Codable {
    /// Configuration of the publication; the id is the mirror's own, in the mirror's worker.
    package var configuration: PublicationConfiguration
    /// Home publication: the source of the media and the destination of keyframe requests.
    package var home: RelayTarget
    /// Whether the gate is open; `Command.gate` changes it later.
    package var open: Bool
    /// Time since which held audio is requested from the home before live packets are taken.
    package var from: Instant?

    package init(configuration: PublicationConfiguration, home: RelayTarget, open: Bool) {
        self.configuration = configuration
        self.home = home
        self.open = open
    }
}

/// Publication in another worker that packets are relayed to or from.
package struct RelayTarget: Hashable, Sendable, BitwiseCopyable, Codable {
    package var worker: Int
    package var publication: PublicationID

    package init(worker: Int, publication: PublicationID) {
        self.worker = worker
        self.publication = publication
    }
}
