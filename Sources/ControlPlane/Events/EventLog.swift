import Contract
import Rooms
import WorkerInterface

extension Room.Event {
    /// Log line of an event; `nil` if it concerns only signalling servers.
    ///
    /// Participants appear by id. The line has no text chosen by participants and no secrets.
    var logLine: (level: LogLevel, message: String, fields: [(String, String)])? {
        switch self {
        case .joined(let participant, let again):
            return (
                .info, again ? "participant rejoined" : "participant joined",
                [("participant", participant.id), ("role", participant.role)]
            )
        case .awaited(let participant):
            return (.info, "participant knocks", [("participant", participant.id)])
        case .left(let participant, let reason):
            return (
                .info, "participant left",
                [("participant", participant.id), ("reason", reason)]
            )
        case .connection(let participant, let transport, let change):
            return (
                .info, "transport \(change.word)",
                [("participant", participant), ("transport", transport)] + change.reasonField
            )
        case .streamCreated(let stream):
            return (
                .info, "stream created",
                [("participant", stream.participant), ("stream", stream.id)]
            )
        case .streamDestroyed(let stream, let reason):
            return (
                .info, "stream destroyed",
                [("participant", stream.participant), ("stream", stream.id), ("reason", reason)]
            )
        case .subscriptionConnected(let subscription):
            return (.debug, "subscription connected", [("subscription", subscription.id)])
        case .layerChanged(let subscription, let from, let to):
            return (
                .debug, "layer changed",
                [
                    ("subscription", subscription.id), ("from", from.text), ("to", to.text),
                ]
            )
        case .videoDisabled(let subscription, let reason):
            return (
                .debug, "video disabled",
                [("subscription", subscription.id), ("reason", "\(reason)")]
            )
        case .videoEnabled(let subscription, let reason):
            return (
                .debug, "video enabled",
                [("subscription", subscription.id), ("reason", "\(reason)")]
            )
        case .layersWanted(let stream, let layers):
            let wanted = layers.filter(\.isWanted).map { $0.rid ?? "all" }
            return (
                .debug, "layers wanted",
                [("stream", stream.id), ("layers", wanted.joined(separator: ","))]
            )
        case .streamChanged, .subscriptionDisconnected, .subscriptionReconnected, .closed:
            return nil
        default:
            return moderationLine
        }
    }

    /// Log line of a moderation event.
    private var moderationLine: (level: LogLevel, message: String, fields: [(String, String)])? {
        switch self {
        case .stateChanged(let state, let actor):
            return (.info, "state changed", [("state", state.rawValue)] + by(actor))
        case .updated(let actor): return (.info, "room updated", by(actor))
        case .locked(let on, let actor):
            return (.info, on ? "room locked" : "room unlocked", by(actor))
        case .roomMuted(let on, let actor):
            return (.info, on ? "room hard-muted" : "room hard-unmuted", by(actor))
        case .approved(let participant, let actor):
            return (
                .info, "participant approved", [("participant", participant.id)] + by(actor)
            )
        case .denied(let participant, let actor):
            return (.info, "participant denied", [("participant", participant.id)] + by(actor))
        case .modeChanged(let participant, let actor):
            return (
                .info, "mode changed",
                [("participant", participant.id), ("mode", participant.mode.rawValue)]
                    + by(actor)
            )
        case .roleChanged(let participant, _, let actor):
            return (
                .info, "role changed",
                [("participant", participant.id), ("role", participant.role)] + by(actor)
            )
        case .participantMuted(let participant, let media, let on, let actor):
            let kinds = media.map { "\($0)" }.joined(separator: ",")
            return (
                .info, on ? "participant hard-muted" : "participant hard-unmuted",
                [("participant", participant.id), ("media", kinds)] + by(actor)
            )
        case .floor(let what, let participant, let actor):
            return (
                .info, "floor \(what.rawValue)", [("participant", participant.id)] + by(actor)
            )
        case .recordingStarted(let tap):
            return (.info, "recording started", [("recording", tap.name)] + by(tap.by))
        case .recordingStopped(let tap, let reason, let actor):
            let why = reason.map { [("reason", $0)] } ?? []
            return (.info, "recording stopped", [("recording", tap.name)] + why + by(actor))
        default:
            return streamingLine ?? outputLine
        }
    }

    private func by(_ actor: String?) -> [(String, String)] {
        actor.map { [("by", $0)] } ?? []
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
