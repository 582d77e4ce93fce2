package import WorkerInterface

extension Room {
    /// Event to announce, with its audience.
    package struct Announcement: Sendable {
        package var news: Event
        package var to: Audience
    }

    package enum Audience: Hashable, Sendable {
        /// All admitted participants.
        case everyone
        case only([String])
    }

    /// Returns the audience of events about a participant.
    ///
    /// For one that awaits approval, that is itself and the moderators.
    func audience(of participant: Participant) -> Audience {
        participant.admitted ? .everyone : .only([participant.id] + moderators)
    }

    package enum Event: Sendable {
        /// A participant joined; `again` marks a rejoin that replaces its transports.
        case joined(Participant, again: Bool)
        case awaited(Participant)
        case left(Participant, reason: String)
        case connection(participant: String, transport: String, TransportChange)
        case streamCreated(Stream)
        case streamChanged(Stream)
        case streamDestroyed(Stream, reason: String)
        case subscriptionConnected(Subscription)
        case subscriptionDisconnected(Subscription)
        case subscriptionReconnected(Subscription)
        case videoDisabled(Subscription, DisableReason)
        case videoEnabled(Subscription, DisableReason)
        case layerChanged(Subscription, from: LayerName?, to: LayerName?)
        case layersWanted(Stream, [WantedLayer])
        case stateChanged(State, by: String?)
        /// The room was updated; the callers' custom data may have changed too.
        case updated(by: String?)
        case locked(Bool, by: String?)
        case roomMuted(Bool, by: String?)
        case approved(Participant, by: String?)
        case denied(Participant, by: String?)
        case modeChanged(Participant, by: String?)
        case roleChanged(Participant, from: String, by: String?)
        case roleRequested(RoleRequest)
        case roleDeclined(RoleRequest)
        case transferred(from: String, to: String)
        /// A moderator muted or unmuted a participant; `media` are the kinds that changed.
        case participantMuted(Participant, media: [MediaKind], on: Bool, by: String?)
        case floor(FloorChange, Participant, by: String?)
        /// The pins changed; the complete new list.
        case pinsChanged([String], by: String?)
        /// The active-speaker list changed, as this audience sees it.
        case talkersChanged([Talker])
        case closed(reason: String, by: String?)
        /// A recording's first packet is on disk.
        case recordingStarted(Tap)
        /// A recording stopped; `reason` is set if nobody asked for it.
        case recordingStopped(Tap, reason: String?, by: String?)
        /// A live stream's first packet has reached the server.
        case streamingStarted(Tap)
        case streamingStopped(Tap, reason: String, by: String?)
        /// The connection to the server was lost and is being retried.
        case streamingInterrupted(Tap, cause: String)
        case streamingResumed(Tap)
        /// A stream is forwarded as plain RTP.
        case outputStarted(Tap)
        case outputStopped(Tap, reason: String, by: String?)
    }

    /// Reason words for the end of a stream, a participant's stay, a transport or an output.
    package enum EndReason {
        package static let unpublished = "unpublished"
        package static let left = "left"
        /// A second join replaced the participant's transports.
        package static let takeover = "takeover"
        package static let transportClosed = "transport-closed"
        package static let roomClosed = "room-closed"
        package static let shutdown = "shutdown"
        /// The transport was lost.
        package static let disconnected = "disconnected"
        /// The new role or mode does not allow publishing.
        package static let role = "role-changed"
        package static let mode = "mode-changed"
        package static let floor = "floor-lost"
        package static let dropped = "dropped"
        package static let denied = "denied"
        /// The live event has ended.
        package static let ended = "ended"
        /// A caller stopped the live stream or RTP forward.
        package static let requested = "requested"
    }
}
