package import WorkerInterface

extension Room {
    /// An event to be, and who should hear of it.
    package struct Announcement: Sendable {
        package var news: News
        package var to: Audience
    }

    package enum Audience: Hashable, Sendable {
        /// All who are in the room; the awaited are not.
        case everyone
        case only([String])
    }

    /// Who hears what befalls a participant: of one that waits to be let in, only the moderators.
    func audience(of participant: Participant) -> Audience {
        participant.admitted ? .everyone : .only([participant.id] + moderators)
    }

    package enum News: Sendable {
        /// `again`: the participant was here and has been taken over.
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
        /// What the room's callers keep with it may have changed too.
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
        /// `media`: those that changed.
        case participantMuted(Participant, media: [MediaKind], on: Bool, by: String?)
        case floor(FloorNews, Participant, by: String?)
        /// All pins there are now.
        case pinsChanged([String], by: String?)
        /// The list of active talkers, as those see it who are told.
        case talkersChanged([Talker])
        case closed(reason: String, by: String?)
        /// The first packet is on disk.
        case recordingStarted(Tap)
        /// `reason`: why, where nobody asked for it.
        case recordingStopped(Tap, reason: String?, by: String?)
        /// The first packet is at the server.
        case streamingStarted(Tap)
        case streamingStopped(Tap, reason: String, by: String?)
        /// The server is gone, and is tried again.
        case streamingInterrupted(Tap, cause: String)
        case streamingResumed(Tap)
        /// A stream goes out as plain RTP.
        case outputStarted(Tap)
        case outputStopped(Tap, reason: String, by: String?)
    }

    /// Why a stream ended, a participant left or a transport closed.
    package enum EndReason {
        package static let unpublished = "unpublished"
        package static let left = "left"
        /// A second join took the participant over.
        package static let takeover = "takeover"
        package static let transportClosed = "transport-closed"
        package static let roomClosed = "room-closed"
        package static let shutdown = "shutdown"
        /// No longer heard from.
        package static let disconnected = "disconnected"
        /// The role, or the mode, lets it publish no longer.
        package static let role = "role-changed"
        package static let mode = "mode-changed"
        package static let floor = "floor-lost"
        package static let dropped = "dropped"
        package static let denied = "denied"
        /// The live event has ended.
        package static let ended = "ended"
        /// Somebody asked for a live stream's end.
        package static let requested = "requested"
    }
}
