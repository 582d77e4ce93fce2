import Contract
import JSON
import RTP
import Rooms
import WorkerInterface

extension ControlPlane {
    /// Sets the rooms whose events a connection receives, and replays the events it missed.
    mutating func subscribe(
        _ params: EventsSubscribe.Params,
        for caller: Caller
    ) throws(IPCError) {
        let rooms = params.rooms.map { Set($0.map(\.rawValue)) }
        var replay: [[UInt8]] = []
        for (room, seen) in (params.since ?? [:]).sorted(by: { $0.key < $1.key }) {
            let parameter = "since.\(room)"
            guard rooms?.contains(room.rawValue) != false else {
                throw .invalidParameter(
                    parameter,
                    "parameter \"\(parameter)\" is none of the rooms asked for"
                )
            }
            guard let seen = UInt64(exactly: seen) else {
                throw .invalidParameter(
                    parameter,
                    "parameter \"\(parameter)\" must be 0 or more"
                )
            }
            replay += missed(room, since: seen)
        }
        answer(Done(), to: caller)
        output.append(.subscribe(caller.connection, rooms: rooms, replay: replay))
    }

    private func missed(_ room: RoomID, since seen: UInt64) -> [[UInt8]] {
        switch journals.missed(room.rawValue, since: seen) {
        case .lines(let lines): lines
        case .expired(let last): [resync(room, "expired", last)]
        case .ahead(let last): [resync(room, "ahead", last)]
        case .noSuchRoom: [resync(room, "no-such-room", 0)]
        }
    }

    private func resync(_ room: RoomID, _ reason: String, _ last: UInt64) -> [UInt8] {
        IPCEvent.encoded(
            Resync(reason: reason),
            room: room,
            seq: Int64(last),
            time: shared.unixTime,
            to: .participants([])
        )
    }

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

    mutating func event(
        _ announcement: Room.Announcement,
        in room: String
    ) -> Operation.Event {
        let to = Audience(announcement.to)
        if let line = announcement.news.logLine {
            output.append(.log(line.level, line.message, [("room", room)] + line.fields))
        }
        switch announcement.news {
        case .joined(let participant, let again):
            let shown = show(participant, in: room)
            return event(
                ParticipantJoined(participant: shown, rejoined: again),
                to: to,
                in: room
            )
        case .awaited(let participant):
            return event(
                ParticipantAwaited(participant: AwaitedParticipant(participant)),
                to: to,
                in: room
            )
        case .left(let participant, let reason):
            let left = ParticipantLeft(
                participant: ParticipantID(participant.id),
                reason: reason
            )
            return event(left, to: to, in: room)
        case .connection(let participant, let transport, let change):
            let connection = ParticipantConnection(participant, transport, change)
            return event(connection, to: to, in: room)
        case .streamCreated(let stream):
            return event(StreamCreated(stream: StreamInfo(stream)), to: to, in: room)
        case .streamChanged(let stream):
            return event(StreamChanged(stream: StreamInfo(stream)), to: to, in: room)
        case .streamDestroyed(let stream, let reason):
            let destroyed = StreamDestroyed(
                stream: StreamID(stream.id),
                participant: ParticipantID(stream.participant),
                reason: reason
            )
            return event(destroyed, to: to, in: room)
        case .layersWanted(let stream, let layers):
            let wanted = StreamLayersWanted(
                stream: StreamID(stream.id),
                participant: ParticipantID(stream.participant),
                layers: layers.map { WantedLayer(rid: $0.rid, wanted: $0.isWanted) }
            )
            return event(wanted, to: to, in: room)
        case .closed(let reason, let actor):
            let closed = RoomClosed(reason: reason, by: actor.map { ParticipantID($0) })
            return event(closed, to: to, in: room)
        case .subscriptionConnected, .subscriptionDisconnected, .subscriptionReconnected,
            .videoDisabled, .videoEnabled, .layerChanged:
            return subscriptionEvent(announcement.news, to: to, in: room)
        default:
            return moderationEvent(announcement.news, to: to, in: room)
        }
    }

    private mutating func subscriptionEvent(
        _ news: Room.Event,
        to: Audience,
        in room: String
    ) -> Operation.Event {
        switch news {
        case .subscriptionConnected(let subscription):
            return event(
                SubscriptionConnected(
                    SubscriptionReference(subscription),
                    audioMid: subscription.audioSlot.flatMap { Mid(rawValue: $0.mid) },
                    videoMid: subscription.videoSlot.flatMap { Mid(rawValue: $0.mid) }
                ),
                to: to,
                in: room
            )
        case .subscriptionDisconnected(let subscription):
            return event(
                SubscriptionDisconnected(SubscriptionReference(subscription)),
                to: to,
                in: room
            )
        case .subscriptionReconnected(let subscription):
            return event(
                SubscriptionReconnected(SubscriptionReference(subscription)),
                to: to,
                in: room
            )
        case .videoDisabled(let subscription, let reason):
            let disabled = SubscriptionVideoDisabled(
                SubscriptionReference(subscription),
                reason: VideoReason(reason)
            )
            return event(disabled, to: to, in: room)
        case .videoEnabled(let subscription, let reason):
            let enabled = SubscriptionVideoEnabled(
                SubscriptionReference(subscription),
                reason: VideoReason(reason)
            )
            return event(enabled, to: to, in: room)
        case .layerChanged(let subscription, let before, let after):
            let changed = SubscriptionLayerChanged(
                SubscriptionReference(subscription),
                from: before?.rid,
                to: after?.rid,
                fromSpatial: before?.spatial,
                toSpatial: after?.spatial
            )
            return event(changed, to: to, in: room)
        default:
            preconditionFailure("this is no news of a subscription")
        }
    }
}

extension Audience {
    fileprivate init(_ audience: Room.Audience) {
        switch audience {
        case .everyone: self = .all
        case .only(let participants): self = .participants(participants.map { ParticipantID($0) })
        }
    }
}

extension ParticipantConnection {
    fileprivate init(_ participant: String, _ transport: String, _ change: TransportChange) {
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
    fileprivate init(_ subscription: Room.Subscription) {
        self.init(
            subscription: SubscriptionID(subscription.id),
            participant: ParticipantID(subscription.participant),
            stream: StreamID(subscription.stream)
        )
    }
}

extension VideoReason {
    fileprivate init(_ reason: Room.DisableReason) {
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
