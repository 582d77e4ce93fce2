import Contract
import Rooms
import WorkerInterface

// The contract's events, made from what a room announces.

extension Audience {
    init(_ audience: Room.Audience) {
        switch audience {
        case .everyone: self = .all
        case .only(let participants): self = .participants(participants.map { ParticipantID($0) })
        case .except(let participants): self = .except(participants.map { ParticipantID($0) })
        }
    }
}

extension Audience {
    /// Most ids in one event.
    static let idLimit = 2_000

    /// The audience in parts of at most `idLimit` ids.
    ///
    /// `except` is never longer: its makers see to it.
    var parts: [Self] {
        guard case .participants(let ids) = self, ids.count > Self.idLimit else { return [self] }
        return stride(from: 0, to: ids.count, by: Self.idLimit).map { start in
            .participants(Array(ids[start..<min(start + Self.idLimit, ids.count)]))
        }
    }
}

extension ParticipantConnection {
    init(_ participant: String, _ transport: String, _ change: TransportChange) {
        var reason: String?
        let connection: Change
        switch change {
        case .connected: connection = .connected
        case .reconnecting: connection = .reconnecting
        case .reconnected: connection = .reconnected
        case .disconnected(let why):
            connection = .disconnected
            reason = why.rawValue
        }
        self.init(
            participant: ParticipantID(participant),
            transport: TransportName(transport),
            connection: connection,
            reason: reason
        )
    }
}

extension SubscriptionReference {
    init(_ subscription: Room.Subscription) {
        self.init(
            subscription: SubscriptionID(subscription.id),
            participant: ParticipantID(subscription.participant),
            stream: StreamID(subscription.stream)
        )
    }
}

extension VideoReason {
    init(_ reason: Room.DisableReason) {
        switch reason {
        case .publisher: self = .publisher
        case .subscriber: self = .subscriber
        case .quality: self = .quality
        case .interrupted: self = .interrupted
        case .codec: self = .codec
        case .role: self = .role
        case .muted: self = .muted
        }
    }
}

extension ParticipantModeChanged {
    init(_ participant: Room.Participant, from old: Room.Mode, by actor: String?) {
        self.init(
            participant: ParticipantID(participant.id),
            previous: ParticipantMode(old),
            current: ParticipantMode(participant.mode),
            by: ParticipantID(actor)
        )
    }
}

extension ParticipantRoleChanged {
    init(_ participant: Room.Participant, from old: String, by actor: String?) {
        self.init(
            participant: ParticipantID(participant.id),
            previous: RoleName(old),
            current: RoleName(participant.role),
            by: ParticipantID(actor)
        )
    }
}

extension ParticipantHardMuted {
    init(_ participant: Room.Participant, _ media: [MediaKind], by actor: String?) {
        self.init(
            participant: ParticipantID(participant.id),
            media: media.map { StreamKind($0) },
            by: ParticipantID(actor)
        )
    }
}

extension ParticipantHardUnmuted {
    init(_ participant: Room.Participant, _ media: [MediaKind], by actor: String?) {
        self.init(
            participant: ParticipantID(participant.id),
            media: media.map { StreamKind($0) },
            by: ParticipantID(actor)
        )
    }
}

extension StreamDestroyed {
    init(_ stream: Room.Stream, reason: String, by actor: String?) {
        self.init(
            stream: StreamID(stream.id),
            participant: ParticipantID(stream.participant),
            reason: reason,
            by: ParticipantID(actor)
        )
    }
}

extension StreamLayersWanted {
    init(_ stream: Room.Stream, _ layers: [Room.WantedLayer], by actor: ParticipantID?) {
        self.init(
            stream: StreamID(stream.id),
            participant: ParticipantID(stream.participant),
            layers: layers.map { WantedLayer(rid: $0.rid, wanted: $0.isWanted) },
            by: actor
        )
    }
}

extension SubscriptionConnected {
    init(_ subscription: Room.Subscription) {
        self.init(
            SubscriptionReference(subscription),
            audioMid: subscription.audioSlot.flatMap { Mid(rawValue: $0.mid) },
            videoMid: subscription.videoSlot.flatMap { Mid(rawValue: $0.mid) }
        )
    }
}

extension SubscriptionLayerChanged {
    init(_ subscription: Room.Subscription, from before: LayerName?, to after: LayerName?) {
        self.init(
            SubscriptionReference(subscription),
            previous: before.map { ForwardedLayer(rid: $0.rid, spatial: $0.spatial) },
            current: after.map { ForwardedLayer(rid: $0.rid, spatial: $0.spatial) }
        )
    }
}

extension RoleChangeRequested {
    init(_ request: Room.RoleRequest) {
        self.init(
            request: RoleRequestID(request.id),
            participant: ParticipantID(request.target),
            role: RoleName(request.role),
            by: ParticipantID(request.requester),
            expires: request.expires
        )
    }
}

extension RoleChangeDeclined {
    init(_ request: Room.RoleRequest, by actor: String?) {
        self.init(
            request: RoleRequestID(request.id),
            participant: ParticipantID(request.target),
            role: RoleName(request.role),
            by: ParticipantID(actor)
        )
    }
}

extension RoleRequestExpired {
    init(_ request: Room.RoleRequest, _ end: Room.RoleRequestEnd, by actor: ParticipantID?) {
        self.init(
            request: RoleRequestID(request.id),
            participant: ParticipantID(request.target),
            role: RoleName(request.role),
            reason: end.rawValue,
            requester: ParticipantID(request.requester),
            by: actor
        )
    }
}

extension Room.FloorChange {
    /// Makes the event of the change.
    func event(_ participant: Room.Participant, by actor: String?) -> any FloorEvent {
        let type: any FloorEvent.Type =
            switch self {
            case .requested: FloorRequested.self
            case .cancelled: FloorCancelled.self
            case .finished: FloorFinished.self
            case .granted: FloorGranted.self
            case .denied: FloorDenied.self
            case .released: FloorReleased.self
            }
        return type.init(
            participant: ParticipantID(participant.id),
            name: participant.name ?? "",
            by: ParticipantID(actor)
        )
    }
}

extension ParticipantID {
    /// Makes the id of a participant; `nil` for `nil`.
    init?(_ made: String?) {
        guard let made else { return nil }
        self.init(made)
    }
}
