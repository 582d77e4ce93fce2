import Contract
import JSON
import RTP
import Rooms
import WorkerInterface

extension ControlPlane {
    /// Numbers and encodes an event.
    mutating func event<Data: EventData>(
        _ data: Data,
        to audience: Audience,
        in room: String
    ) -> Operation.Event {
        let seq = journals.number(room)
        let line = IPCEvent.encoded(
            data,
            room: RoomID(room),
            seq: Int64(seq),
            time: shared.unixTime,
            audience: audience
        )
        return Operation.Event(seq: seq, line: EventLine(name: Data.event, line: line))
    }

    /// Numbers and encodes an event, as several if its audience is long.
    ///
    /// An event's line stays far below 1 MiB, whatever else it says.
    mutating func events(
        _ data: some EventData,
        to audience: Audience,
        in room: String
    ) -> [Operation.Event] {
        audience.parts.map { event(data, to: $0, in: room) }
    }

    /// Announces an event of the server.
    mutating func announce<Data: EventData>(_ data: Data) {
        let line = IPCEvent.encoded(data, time: shared.unixTime)
        output.append(.serverEvent(EventLine(name: Data.event, line: line)))
    }

    /// Numbers and encodes an event that a room announces, and logs it.
    ///
    /// `roomInfo` is the room for participants that were admitted.
    mutating func events(
        _ announcement: Room.Announcement,
        in room: String,
        roomInfo: RoomInfo? = nil
    ) -> [Operation.Event] {
        if let line = announcement.news.logLine {
            output.append(.log(line.level, line.message, [("room", room)] + line.fields))
        }
        let to = Audience(announcement.to)
        let by = ParticipantID(announcement.by)
        let data: any EventData
        switch announcement.news {
        case .joined(let participant, let again):
            data = ParticipantJoined(show(participant, in: room), rejoined: again, by: by)
        case .awaited(let participant):
            data = ParticipantAwaited(show(participant, in: room))
        case .left(let participant, let reason, let detail):
            let left = ParticipantLeft(
                participant: ParticipantID(participant.id),
                reason: reason,
                detail: detail.flatMap(ShortText.init),
                by: by
            )
            return events(left, of: participant, to: to, in: room)
        case .approved(let participant, let actor):
            data = ParticipantApproved(
                show(participant, in: room),
                roomInfo: roomInfo,
                by: ParticipantID(actor)
            )
        case .denied(let participant, let detail, let actor):
            data = ParticipantDenied(
                participant: ParticipantID(participant.id),
                detail: detail.flatMap(ShortText.init),
                by: ParticipantID(actor)
            )
        case .participantChanged(let participant):
            data = ParticipantChanged(show(participant, in: room), by: by)
        case .modeChanged(let participant, let old, let actor):
            data = ParticipantModeChanged(participant, from: old, by: actor)
        case .roleChanged(let participant, let old, let actor):
            data = ParticipantRoleChanged(participant, from: old, by: actor)
        case .participantMuted(let participant, let media, true, let actor):
            data = ParticipantHardMuted(participant, media, by: actor)
        case .participantMuted(let participant, let media, false, let actor):
            data = ParticipantHardUnmuted(participant, media, by: actor)
        case .connection(let participant, let transport, let change):
            data = ParticipantConnection(participant, transport, change)
        case .moveWanted(let participant, let node, let reason):
            data = ParticipantMoveWanted(
                participant: ParticipantID(participant),
                node: node,
                reason: reason.rawValue
            )

        case .streamCreated(let stream): data = StreamCreated(StreamInfo(stream), by: by)
        case .streamChanged(let stream): data = StreamChanged(StreamInfo(stream), by: by)
        case .streamDestroyed(let stream, let reason):
            data = StreamDestroyed(stream, reason: reason, by: announcement.by)
        case .layersWanted(let stream, let layers):
            data = StreamLayersWanted(stream, layers, by: by)

        case .subscriptionConnected(let subscription):
            data = SubscriptionConnected(subscription)
        case .subscriptionDisconnected(let subscription, let isFinal, let reason):
            data = SubscriptionDisconnected(
                SubscriptionReference(subscription),
                final: isFinal,
                reason: reason.rawValue,
                by: by
            )
        case .subscriptionReconnected(let subscription):
            data = SubscriptionReconnected(SubscriptionReference(subscription))
        case .videoDisabled(let subscription, let reason):
            let reference = SubscriptionReference(subscription)
            data = SubscriptionVideoDisabled(reference, reason: VideoReason(reason), by: by)
        case .videoEnabled(let subscription, let reason):
            let reference = SubscriptionReference(subscription)
            data = SubscriptionVideoEnabled(reference, reason: VideoReason(reason), by: by)
        case .layerChanged(let subscription, let before, let after):
            data = SubscriptionLayerChanged(subscription, from: before, to: after)

        case .stateChanged(let state, let old, let actor):
            data = RoomStateChanged(
                previous: RoomState(old),
                current: RoomState(state),
                by: ParticipantID(actor)
            )
        case .updated(let actor): data = roomUpdated(room, by: actor)
        case .locked(true, let actor): data = RoomLocked(by: ParticipantID(actor))
        case .locked(false, let actor): data = RoomUnlocked(by: ParticipantID(actor))
        case .roomMuted(true, let actor): data = RoomHardMuted(by: ParticipantID(actor))
        case .roomMuted(false, let actor): data = RoomHardUnmuted(by: ParticipantID(actor))
        case .pinsChanged(let pins, let actor):
            let pins = pins.map { ParticipantID($0) }
            data = PinsChanged(pins: pins, by: ParticipantID(actor))
        case .talkersChanged(let talkers):
            data = TalkersChanged(talkers: talkers.map(Talker.init), by: by)
        case .closed(let reason, let detail, let actor):
            data = RoomClosed(
                reason: reason,
                detail: detail.flatMap(ShortText.init),
                by: ParticipantID(actor)
            )

        case .roleRequested(let request): data = RoleChangeRequested(request)
        case .roleDeclined(let request): data = RoleChangeDeclined(request, by: announcement.by)
        case .roleExpired(let request, let end):
            data = RoleRequestExpired(request, end, by: by)
        case .transferred(let from, let target):
            data = ModeratorTransferred(
                previous: ParticipantID(from),
                current: ParticipantID(target),
                by: by
            )
        case .floor(let change, let participant, let actor):
            data = change.event(participant, by: actor)

        case .recordingStarted(let tap): data = RecordingStarted(tap)
        case .recordingStopped(let tap, let reason, let actor):
            let stopped = StoppedRecording(tap: tap, reason: reason, by: actor, to: to)
            return [event(stopped, in: room)]
        case .recordingFailed(let name, let reason, let actor):
            data = RecordingFailed(
                recording: name.map { RecordingID($0) },
                reason: reason,
                by: ParticipantID(actor)
            )
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
        return events(data, to: to, in: room)
    }

    private func roomUpdated(_ room: String, by actor: String?) -> RoomUpdated {
        RoomUpdated(
            custom: rooms[room]?.custom ?? [:],
            settings: rooms[room]?.settings ?? RoomSettings(),
            by: ParticipantID(actor)
        )
    }
}
