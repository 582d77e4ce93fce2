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
        case layerChanged(Subscription, from: String?, to: String?)
        case closed(reason: String, by: String?)
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
    }
}
