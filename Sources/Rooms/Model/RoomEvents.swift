package import WorkerInterface

extension Room {
    /// Event to announce, with its audience.
    package struct Announcement: Sendable {
        package var news: Event
        package var to: Audience
        /// Participant whose call caused it.
        package var by: String?
    }

    package enum Audience: Hashable, Sendable {
        /// All admitted participants.
        case everyone
        case only([String])
        /// All admitted participants but these.
        case except([String])
    }

    /// Returns the audience of events about a participant.
    ///
    /// For one that awaits approval, that is itself and the moderators.
    func audience(of participant: Participant) -> Audience {
        participant.admitted ? .everyone : concerned(participant.id)
    }

    /// Returns the audience of what concerns one participant: itself, the moderators and who acted.
    func concerned(_ id: String, _ actor: String? = nil) -> Audience {
        var ids = [id] + moderators.filter { $0 != id }
        if let actor, actor != id, participants[actor]?.isMarked != true { ids.append(actor) }
        return .only(ids)
    }

    package enum Event: Sendable {
        /// A participant joined; `again` marks a rejoin that replaces its transports.
        case joined(Participant, again: Bool)
        case awaited(Participant)
        /// A participant left; `detail` is free text of the caller.
        case left(Participant, reason: String, detail: String? = nil)
        case connection(participant: String, transport: String, TransportChange)
        /// A participant's client is to offer again, as the room is at this node now.
        case moveWanted(participant: String, node: String, MoveReason)
        case streamCreated(Stream)
        case streamChanged(Stream)
        case streamDestroyed(Stream, reason: String)
        case subscriptionConnected(Subscription)
        /// A subscription's media has stopped, for good if `isFinal`.
        case subscriptionDisconnected(Subscription, isFinal: Bool, SubscriptionLoss)
        case subscriptionReconnected(Subscription)
        case videoDisabled(Subscription, DisableReason)
        case videoEnabled(Subscription, DisableReason)
        case layerChanged(Subscription, from: LayerName?, to: LayerName?)
        case layersWanted(Stream, [WantedLayer])
        case stateChanged(State, from: State, by: String?)
        /// The room was updated; the callers' custom data may have changed too.
        case updated(by: String?)
        case locked(Bool, by: String?)
        case roomMuted(Bool, by: String?)
        case approved(Participant, by: String?)
        case denied(Participant, detail: String?, by: String?)
        /// Its name or the callers' data of it changed.
        case participantChanged(Participant)
        case modeChanged(Participant, from: Mode, by: String?)
        case roleChanged(Participant, from: String, by: String?)
        case roleRequested(RoleRequest)
        case roleDeclined(RoleRequest)
        /// A role request has ended without an answer.
        case roleExpired(RoleRequest, RoleRequestEnd)
        case transferred(from: String, to: String)
        /// A moderator muted or unmuted a participant; `media` are the kinds that changed.
        case participantMuted(Participant, media: [MediaKind], on: Bool, by: String?)
        case floor(FloorChange, Participant, by: String?)
        /// The pins changed; the complete new list.
        case pinsChanged([String], by: String?)
        /// The active-speaker list changed, as this audience sees it.
        case talkersChanged([Talker])
        case closed(reason: String, detail: String?, by: String?)
        /// A recording's directory and files are ready.
        case recordingStarted(Tap)
        /// A recording stopped; `reason` is set if nobody asked for it.
        case recordingStopped(Tap, reason: String?, by: String?)
        /// A recording could not begin; one that was not even opened has no name.
        case recordingFailed(name: String?, reason: String, by: String?)
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

    /// Reason word for a room's move to another node.
    package enum MoveReason: String, Hashable, Sendable {
        /// The node that had the room was lost.
        case nodeLost = "node-lost"
        /// The node where the participant is connected drains.
        case drain
    }

    /// Reason word for the end or interruption of a subscription.
    ///
    /// The end of a stream ends its subscriptions too; `streamDestroyed` announces that to all.
    package enum SubscriptionLoss: String, Hashable, Sendable {
        /// The publisher's transport is silent; it may return.
        case publisher = "publisher-reconnecting"
        /// The subscriber's own transport was silent.
        case transport = "transport-reconnecting"
        /// The roles no longer allow it.
        case role
        /// A renegotiation has ended the m-lines that carried it.
        case slots = "slots-ended"
        /// Following slots had no talker to carry in its place.
        case talkers = "talkers-changed"
    }

    /// Reason words for the end of a stream, a participant's stay, a transport or an output.
    package enum EndReason {
        package static let unpublished = "unpublished"
        package static let left = "left"
        /// A second join replaced the participant's transports.
        package static let takeover = "takeover"
        package static let transportClosed = "transport-closed"
        package static let roomClosed = "room-closed"
        /// A caller closed the room.
        package static let closed = "closed"
        package static let shutdown = "shutdown"
        /// The transport was lost.
        package static let disconnected = "disconnected"
        /// The new role or mode does not allow publishing.
        package static let role = "role-changed"
        package static let mode = "mode-changed"
        package static let floor = "floor-lost"
        /// The live event has fewer host places than before.
        package static let hostPlace = "host-place-lost"
        package static let dropped = "dropped"
        package static let denied = "denied"
        /// Another client has joined as the participant.
        package static let replaced = "replaced"
        /// Nobody has been in the room for `emptySeconds`.
        package static let empty = "empty"
        /// The daemon was started again.
        package static let restart = "restart"
        /// The node that had the room was lost.
        package static let nodeLost = "node-lost"
        /// All participants of an automatically recorded room have left.
        package static let sessionEnded = "session-ended"
        /// The live event has ended.
        package static let ended = "ended"
        /// A caller stopped the live stream or RTP forward.
        package static let requested = "requested"
    }
}
