import Contract
import JSON
import RTP
import Rooms
import WorkerInterface

extension ControlPlane {
    /// Numbers and encodes an event.
    mutating func event(
        _ data: some EventData,
        to audience: Audience,
        in room: String
    ) -> Operation.Event {
        let seq = journals.number(room)
        let line = IPCEvent.encoded(
            data,
            room: RoomID(room),
            seq: Int64(seq),
            time: shared.unixTime,
            to: audience
        )
        return Operation.Event(seq: seq, line: line)
    }

    /// Numbers and encodes an event that a room announces, and logs it.
    mutating func event(_ announcement: Room.Announcement, in room: String) -> Operation.Event {
        if let line = announcement.news.logLine {
            output.append(.log(line.level, line.message, [("room", room)] + line.fields))
        }
        let to = Audience(announcement.to)
        let data: any EventData
        switch announcement.news {
        case .joined(let participant, let again):
            data = ParticipantJoined(participant: show(participant, in: room), rejoined: again)
        case .awaited(let participant):
            data = ParticipantAwaited(participant: AwaitedParticipant(participant))
        case .left(let participant, let reason):
            data = ParticipantLeft(participant: ParticipantID(participant.id), reason: reason)
        case .approved(let participant, let actor):
            let shown = show(participant, in: room)
            data = ParticipantApproved(participant: shown, by: ParticipantID(actor))
        case .denied(let participant, let actor):
            let id = ParticipantID(participant.id)
            data = ParticipantDenied(participant: id, by: ParticipantID(actor))
        case .modeChanged(let participant, let actor):
            data = ParticipantModeChanged(participant, by: actor)
        case .roleChanged(let participant, let old, let actor):
            data = ParticipantRoleChanged(participant, from: old, by: actor)
        case .participantMuted(let participant, let media, true, let actor):
            data = ParticipantHardMuted(participant, media, by: actor)
        case .participantMuted(let participant, let media, false, let actor):
            data = ParticipantHardUnmuted(participant, media, by: actor)
        case .connection(let participant, let transport, let change):
            data = ParticipantConnection(participant, transport, change)

        case .streamCreated(let stream): data = StreamCreated(stream: StreamInfo(stream))
        case .streamChanged(let stream): data = StreamChanged(stream: StreamInfo(stream))
        case .streamDestroyed(let stream, let reason):
            data = StreamDestroyed(stream, reason: reason)
        case .layersWanted(let stream, let layers): data = StreamLayersWanted(stream, layers)

        case .subscriptionConnected(let subscription):
            data = SubscriptionConnected(subscription)
        case .subscriptionDisconnected(let subscription):
            data = SubscriptionDisconnected(SubscriptionReference(subscription))
        case .subscriptionReconnected(let subscription):
            data = SubscriptionReconnected(SubscriptionReference(subscription))
        case .videoDisabled(let subscription, let reason):
            let reference = SubscriptionReference(subscription)
            data = SubscriptionVideoDisabled(reference, reason: VideoReason(reason))
        case .videoEnabled(let subscription, let reason):
            let reference = SubscriptionReference(subscription)
            data = SubscriptionVideoEnabled(reference, reason: VideoReason(reason))
        case .layerChanged(let subscription, let before, let after):
            data = SubscriptionLayerChanged(subscription, from: before, to: after)

        case .stateChanged(let state, let actor):
            data = RoomStateChanged(state: RoomState(state), by: ParticipantID(actor))
        case .updated(let actor): data = roomUpdated(room, by: actor)
        case .locked(true, let actor): data = RoomLocked(by: ParticipantID(actor))
        case .locked(false, let actor): data = RoomUnlocked(by: ParticipantID(actor))
        case .roomMuted(true, let actor): data = RoomHardMuted(by: ParticipantID(actor))
        case .roomMuted(false, let actor): data = RoomHardUnmuted(by: ParticipantID(actor))
        case .pinsChanged(let pins, let actor):
            let pins = pins.map { ParticipantID($0) }
            data = PinsChanged(pins: pins, by: ParticipantID(actor))
        case .talkersChanged(let talkers):
            data = TalkersChanged(talkers: talkers.map(Talker.init))
        case .closed(let reason, let actor):
            data = RoomClosed(reason: reason, by: ParticipantID(actor))

        case .roleRequested(let request): data = RoleChangeRequested(request)
        case .roleDeclined(let request): data = RoleChangeDeclined(request)
        case .transferred(let from, let target):
            data = ModeratorTransferred(from: ParticipantID(from), to: ParticipantID(target))
        case .floor(let change, let participant, let actor):
            data = change.event(participant, by: actor)

        case .recordingStarted(let tap): data = RecordingStarted(tap)
        case .recordingStopped(let tap, let reason, let actor):
            let stopped = StoppedRecording(tap: tap, reason: reason, by: actor, to: to)
            return event(stopped, in: room)
        case .streamingStarted(let tap): data = StreamingStarted(tap)
        case .streamingStopped(let tap, let reason, let actor):
            data = StreamingStopped(tap, reason: reason, by: actor)
        case .streamingInterrupted(let tap, let cause):
            data = StreamingInterrupted(streaming: StreamingID(tap.name), cause: cause)
        case .streamingResumed(let tap):
            data = StreamingResumed(streaming: StreamingID(tap.name))
        case .outputStarted(let tap): data = TapStarted(tap)
        case .outputStopped(let tap, let reason, let actor):
            roomOutputs.forwards[tap.id] = nil
            data = TapStopped(tap, reason: reason, by: actor)
        }
        return event(data, to: to, in: room)
    }

    private func roomUpdated(_ room: String, by actor: String?) -> RoomUpdated {
        RoomUpdated(
            custom: rooms[room]?.custom ?? [:],
            settings: rooms[room]?.settings ?? RoomSettings(),
            by: ParticipantID(actor)
        )
    }
}
