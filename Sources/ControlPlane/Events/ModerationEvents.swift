import Contract
import JSON
import Rooms

extension ControlPlane {
    /// Makes the contract's events for moderation.
    mutating func moderationEvent(
        _ news: Room.Event,
        to: Audience,
        in room: String
    ) -> Operation.Event {
        if let event = streamingEvent(news, to: to, in: room) { return event }
        if let event = outputEvent(news, to: to, in: room) { return event }
        switch news {
        case .stateChanged(let state, let actor):
            let changed = RoomStateChanged(state: RoomState(state), by: ParticipantID(actor))
            return event(changed, to: to, in: room)
        case .updated(let actor):
            let updated = RoomUpdated(
                custom: rooms[room]?.custom ?? [:],
                settings: rooms[room]?.settings ?? RoomSettings(),
                by: ParticipantID(actor)
            )
            return event(updated, to: to, in: room)
        case .locked(true, let actor):
            return event(RoomLocked(by: ParticipantID(actor)), to: to, in: room)
        case .locked(false, let actor):
            return event(RoomUnlocked(by: ParticipantID(actor)), to: to, in: room)
        case .roomMuted(true, let actor):
            return event(RoomHardMuted(by: ParticipantID(actor)), to: to, in: room)
        case .roomMuted(false, let actor):
            return event(RoomHardUnmuted(by: ParticipantID(actor)), to: to, in: room)
        case .recordingStarted(let tap):
            return event(RecordingStarted(tap), to: to, in: room)
        case .recordingStopped(let tap, let reason, let actor):
            let stopped = StoppedRecording(tap: tap, reason: reason, by: actor, to: to)
            return event(stopped, in: room)
        case .pinsChanged(let pins, let actor):
            let changed = PinsChanged(
                pins: pins.map { ParticipantID($0) },
                by: ParticipantID(actor)
            )
            return event(changed, to: to, in: room)
        case .talkersChanged(let talkers):
            let changed = TalkersChanged(talkers: talkers.map(Talker.init))
            return event(changed, to: to, in: room)
        default:
            return participantEvent(news, to: to, in: room)
        }
    }

    private mutating func participantEvent(
        _ news: Room.Event,
        to: Audience,
        in room: String
    ) -> Operation.Event {
        switch news {
        case .approved(let participant, let actor):
            let approved = ParticipantApproved(
                participant: show(participant, in: room),
                by: ParticipantID(actor)
            )
            return event(approved, to: to, in: room)
        case .denied(let participant, let actor):
            let denied = ParticipantDenied(
                participant: ParticipantID(participant.id),
                by: ParticipantID(actor)
            )
            return event(denied, to: to, in: room)
        case .modeChanged(let participant, let actor):
            let changed = ParticipantModeChanged(
                participant: ParticipantID(participant.id),
                mode: ParticipantMode(participant.mode),
                by: ParticipantID(actor)
            )
            return event(changed, to: to, in: room)
        case .participantMuted(let participant, let media, let on, let actor):
            let id = ParticipantID(participant.id)
            let kinds = media.map { StreamKind($0) }
            let by = ParticipantID(actor)
            return on
                ? event(
                    ParticipantHardMuted(participant: id, media: kinds, by: by),
                    to: to,
                    in: room
                )
                : event(
                    ParticipantHardUnmuted(participant: id, media: kinds, by: by),
                    to: to,
                    in: room
                )
        case .floor(let what, let participant, let actor):
            return floorEvent(what, participant, by: ParticipantID(actor), to: to, in: room)
        default:
            return roleEvent(news, to: to, in: room)
        }
    }

    private mutating func roleEvent(
        _ news: Room.Event,
        to: Audience,
        in room: String
    ) -> Operation.Event {
        switch news {
        case .roleChanged(let participant, let old, let actor):
            let changed = ParticipantRoleChanged(
                participant: ParticipantID(participant.id),
                from: RoleName(old),
                role: RoleName(participant.role),
                by: ParticipantID(actor)
            )
            return event(changed, to: to, in: room)
        case .roleRequested(let request):
            let requested = RoleChangeRequested(
                request: RoleRequestID(request.id),
                participant: ParticipantID(request.target),
                role: RoleName(request.role),
                by: ParticipantID(request.requester),
                expires: request.expires
            )
            return event(requested, to: to, in: room)
        case .roleDeclined(let request):
            let declined = RoleChangeDeclined(
                request: RoleRequestID(request.id),
                participant: ParticipantID(request.target),
                role: RoleName(request.role)
            )
            return event(declined, to: to, in: room)
        case .transferred(let from, let target):
            let transferred = ModeratorTransferred(
                from: ParticipantID(from),
                to: ParticipantID(target)
            )
            return event(transferred, to: to, in: room)
        default:
            preconditionFailure("this is no news of moderation")
        }
    }

    private mutating func floorEvent(
        _ what: Room.FloorChange,
        _ participant: Room.Participant,
        by actor: ParticipantID?,
        to: Audience,
        in room: String
    ) -> Operation.Event {
        let type: any FloorEvent.Type =
            switch what {
            case .requested: FloorRequested.self
            case .cancelled: FloorCancelled.self
            case .finished: FloorFinished.self
            case .granted: FloorGranted.self
            case .denied: FloorDenied.self
            case .released: FloorReleased.self
            }
        let told = type.init(
            participant: ParticipantID(participant.id),
            name: participant.name ?? "",
            by: actor
        )
        return event(told, to: to, in: room)
    }
}

extension ParticipantID {
    /// Makes the id of a participant; `nil` for `nil`.
    init?(_ made: String?) {
        guard let made else { return nil }
        self.init(made)
    }
}
