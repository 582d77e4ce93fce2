import Contract
import Rooms
import WorkerInterface

/// Log line of a room's event, without the room.
struct EventLogLine {
    var level: LogLevel
    var message: String
    var fields: [(String, String)]

    fileprivate init(
        _ level: LogLevel,
        _ message: String,
        _ fields: [(String, String)] = [],
        by actor: String? = nil
    ) {
        self.level = level
        self.message = message
        self.fields = fields + (actor.map { [("by", $0)] } ?? [])
    }
}

extension Room.Event {
    /// Log line of an event; `nil` if it concerns only signalling servers.
    ///
    /// Participants appear by id, live streams by their server. The line has no text chosen by
    /// participants and no secrets.
    var logLine: EventLogLine? {
        switch self {
        case .joined(let participant, let again):
            let message = again ? "participant rejoined" : "participant joined"
            return EventLogLine(.info, message, participant.field + [("role", participant.role)])
        case .awaited(let participant):
            return EventLogLine(.info, "participant knocks", participant.field)
        // All leave with the room, whose end has a line of its own.
        case .left(_, Room.EndReason.roomClosed, _), .left(_, Room.EndReason.shutdown, _):
            return nil
        case .left(let participant, let reason, _):
            let fields = participant.field + [("reason", reason)]
            return EventLogLine(.info, "participant left", fields)
        case .approved(let participant, let actor):
            return EventLogLine(.info, "participant approved", participant.field, by: actor)
        case .denied(let participant, _, let actor):
            return EventLogLine(.info, "participant denied", participant.field, by: actor)
        case .modeChanged(let participant, _, let actor):
            let fields = participant.field + [("mode", participant.mode.rawValue)]
            return EventLogLine(.info, "mode changed", fields, by: actor)
        case .roleChanged(let participant, _, let actor):
            let fields = participant.field + [("role", participant.role)]
            return EventLogLine(.info, "role changed", fields, by: actor)
        case .participantMuted(let participant, let media, let on, let actor):
            let message = on ? "participant hard-muted" : "participant hard-unmuted"
            let kinds = media.map { "\($0)" }.joined(separator: ",")
            return EventLogLine(.info, message, participant.field + [("media", kinds)], by: actor)
        case .floor(let change, let participant, let actor):
            return EventLogLine(.info, "floor \(change.rawValue)", participant.field, by: actor)
        case .connection(let participant, let transport, let change):
            let fields = [("participant", participant), ("transport", transport)]
            return EventLogLine(.info, "transport \(change.word)", fields + change.reasonField)
        case .moveWanted(let participant, let node, let reason):
            let fields = [("node", node), ("reason", reason.rawValue)]
            return EventLogLine(.info, "move wanted", [("participant", participant)] + fields)

        case .streamCreated(let stream):
            return EventLogLine(.info, "stream created", stream.fields)
        case .streamDestroyed(let stream, let reason):
            return EventLogLine(.info, "stream destroyed", stream.fields + [("reason", reason)])
        case .layersWanted(let stream, let layers):
            let wanted = layers.filter(\.isWanted).map { $0.rid ?? "all" }
            let fields = [("stream", stream.id), ("layers", wanted.joined(separator: ","))]
            return EventLogLine(.debug, "layers wanted", fields)
        case .subscriptionConnected(let subscription):
            return EventLogLine(.debug, "subscription connected", subscription.field)
        case .layerChanged(let subscription, let from, let to):
            let fields = subscription.field + [("from", from.text), ("to", to.text)]
            return EventLogLine(.debug, "layer changed", fields)
        case .videoDisabled(let subscription, let reason):
            let fields = subscription.field + [("reason", "\(reason)")]
            return EventLogLine(.debug, "video disabled", fields)
        case .videoEnabled(let subscription, let reason):
            let fields = subscription.field + [("reason", "\(reason)")]
            return EventLogLine(.debug, "video enabled", fields)

        case .stateChanged(let state, _, let actor):
            return EventLogLine(.info, "state changed", [("state", state.rawValue)], by: actor)
        case .updated(let actor): return EventLogLine(.info, "room updated", by: actor)
        case .locked(let on, let actor):
            return EventLogLine(.info, on ? "room locked" : "room unlocked", by: actor)
        case .roomMuted(let on, let actor):
            return EventLogLine(.info, on ? "room hard-muted" : "room hard-unmuted", by: actor)

        case .recordingStarted(let tap):
            return EventLogLine(.info, "recording started", [("recording", tap.name)], by: tap.by)
        case .recordingStopped(let tap, let reason, let actor):
            let fields = [("recording", tap.name)] + (reason.map { [("reason", $0)] } ?? [])
            return EventLogLine(.info, "recording stopped", fields, by: actor)
        case .recordingFailed(let name, let reason, let actor):
            let fields = (name.map { [("recording", $0)] } ?? []) + [("reason", reason)]
            return EventLogLine(.warning, "recording failed", fields, by: actor)
        case .streamingStarted(let tap):
            let server = tap.target.map { [("server", $0.url.server)] } ?? []
            return EventLogLine(.info, "streaming started", tap.streamingFields(tap.by) + server)
        case .streamingStopped(let tap, let reason, let actor):
            let fields = tap.streamingFields(actor) + [("reason", reason)]
            return EventLogLine(.info, "streaming stopped", fields)
        case .streamingInterrupted(let tap, let cause):
            let fields = tap.streamingFields(nil) + [("cause", cause)]
            return EventLogLine(.warning, "streaming interrupted", fields)
        case .streamingResumed(let tap):
            return EventLogLine(.info, "streaming resumed", tap.streamingFields(nil))
        case .outputStarted(let tap):
            let destinations = (tap.output?.lines ?? []).map { line in
                ("\(line.kind)", line.address.endpointText)
            }
            return EventLogLine(.info, "tap started", tap.forwardFields(tap.by) + destinations)
        case .outputStopped(let tap, let reason, let actor):
            let fields = tap.forwardFields(actor) + [("reason", reason)]
            return EventLogLine(.info, "tap stopped", fields)

        case .participantChanged, .streamChanged, .subscriptionDisconnected,
            .subscriptionReconnected, .roleRequested, .roleDeclined, .roleExpired, .transferred,
            .pinsChanged, .talkersChanged, .closed:
            return nil
        }
    }
}

extension Room.Participant {
    fileprivate var field: [(String, String)] { [("participant", id)] }
}

extension Room.Subscription {
    fileprivate var field: [(String, String)] { [("subscription", id)] }
}

extension Room.Stream {
    fileprivate var fields: [(String, String)] { [("participant", participant), ("stream", id)] }
}

extension Room.Tap {
    fileprivate func streamingFields(_ actor: String?) -> [(String, String)] {
        [("streaming", name)] + (actor.map { [("by", $0)] } ?? [])
    }

    fileprivate func forwardFields(_ actor: String?) -> [(String, String)] {
        [("tap", name), ("stream", output?.stream ?? "")] + (actor.map { [("by", $0)] } ?? [])
    }
}

extension LayerName? {
    /// Layer name such as `f`, `f/2` or, with spatial layers only, `2`.
    fileprivate var text: String {
        let words = [self?.rid, (self?.spatial).map { "\($0)" }].compactMap(\.self)
        return words.isEmpty ? "-" : words.joined(separator: "/")
    }
}

extension TransportChange {
    fileprivate var word: String {
        switch self {
        case .connected: "connected"
        case .reconnecting: "reconnecting"
        case .reconnected: "reconnected"
        case .disconnected: "disconnected"
        }
    }

    fileprivate var reasonField: [(String, String)] {
        guard case .disconnected(let reason) = self else { return [] }
        return [("reason", reason.rawValue)]
    }
}
