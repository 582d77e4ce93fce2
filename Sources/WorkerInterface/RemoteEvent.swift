package import RTP

/// Event of a worker for the home of its participants at another node.
///
/// Handles are the home's. Times are on the sender's clock, which is told with them.
package enum RemoteEvent: Hashable, Sendable, Codable {
    case fenced(epoch: UInt64, at: Instant, packets: UInt64)
    case transport(TransportID, TransportChange)
    case closed(TransportID, LinkQuality)
    case started(SlotID, subscription: UInt64)
    case layerChanged(SlotID, subscription: UInt64, from: LayerName?, to: LayerName?)
    case layers(PublicationID, codec: Codec, [LayerDescription])
    case videoHeld(SlotID, subscription: UInt64, VideoHold?)
    case layersWanted(PublicationID, home: RelayTarget?, UInt8)
    case explained(token: UInt64, LayerExplanation?)
    case speech(PublicationID, SpeechChange)
    case statistics(
        token: UInt64,
        [TransportStatistics],
        [PublicationStatistics],
        [SlotStatistics]
    )

    /// The same without the figures that it may have, of which there can be very many.
    package var withoutFigures: Self {
        guard case .statistics(let token, _, _, _) = self else { return self }
        return .statistics(token: token, [], [], [])
    }

    /// Returns the event as a worker of this node would tell it.
    ///
    /// `offset`: nanoseconds from the sender's clock to this one.
    package func event(offset: Int64, now: Instant) -> WorkerEvent {
        func local(_ instant: Instant) -> Instant {
            // Nothing has happened in the future, however wrong the sender's clock.
            min(now, Instant(nanoseconds: instant.nanoseconds &+ offset))
        }
        switch self {
        case .fenced(let epoch, let at, let packets):
            return .fenced(epoch: epoch, at: local(at), packets: packets)
        case .transport(let id, let change): return .transport(id, change)
        case .closed(let id, let quality): return .closed(id, quality)
        case .started(let slot, let subscription):
            return .started(slot, subscription: subscription)
        case .layerChanged(let slot, let subscription, let from, let to):
            return .layerChanged(slot, subscription: subscription, from: from, to: to)
        case .layers(let id, let codec, let layers): return .layers(id, codec: codec, layers)
        case .videoHeld(let slot, let subscription, let reason):
            return .videoHeld(slot, subscription: subscription, reason)
        case .layersWanted(let id, let home, let mask):
            return .layersWanted(id, home: home, mask)
        case .explained(let token, var explanation):
            explanation?.move(by: offset)
            return .explained(token: token, explanation)
        case .speech(let id, .began(let at)): return .speech(id, .began(at: local(at)))
        case .speech(let id, .ended): return .speech(id, .ended)
        case .statistics(let token, let transports, let publications, let slots):
            var statistics = WorkerStatistics()
            statistics.time = now
            statistics.transports = transports
            statistics.publications = publications
            statistics.slots = slots
            return .statistics(token: token, statistics)
        }
    }
}

extension LayerExplanation {
    /// Moves its times from another clock to this one.
    fileprivate mutating func move(by offset: Int64) {
        func moved(_ instant: Instant) -> Instant {
            Instant(nanoseconds: instant.nanoseconds &+ offset)
        }
        retryAt = retryAt.map(moved)
        for index in decisions.indices { decisions[index].at = moved(decisions[index].at) }
        for index in freezes.recent.indices {
            freezes.recent[index].began = moved(freezes.recent[index].began)
        }
    }
}
