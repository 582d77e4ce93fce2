import SFU

extension SFU::Room.News {
    /// What the daemon's own log says of it; `nil` where only signalling servers care.
    ///
    /// Names are ids; nothing that a participant chose freely, and no secret, is among them.
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
                [("subscription", subscription.id), ("from", from ?? "-"), ("to", to ?? "-")]
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
        case .streamChanged, .subscriptionDisconnected, .subscriptionReconnected, .closed:
            return nil
        }
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
