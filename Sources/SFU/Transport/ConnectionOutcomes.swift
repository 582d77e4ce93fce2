import RTP
import WorkerInterface

/// Outcomes of new transports, for the metrics.
extension Transports {
    mutating func noteConnected(_ transport: TransportIndex, at now: Instant) {
        guard let opened = transports[transport].opened else { return }
        counters.connections.seconds.add(Double(now.nanoseconds(since: opened)) / 1e9)
    }

    /// Counts the end of a transport that has a reason on the peer's side.
    mutating func noteEnd(of transport: TransportIndex, _ reason: DisconnectReason) {
        switch transports[transport].state {
        case .connecting:
            guard transports[transport].opened != nil else { return }
            let hasPath = !transports[transport].ice.paths.isEmpty
            counters.connections.note(.init(reason, hasPath: hasPath))
        case .connected, .reconnecting:
            if reason == .timeout {
                counters.connections.timedOut &+= 1
            } else {
                counters.connections.closedByPeer &+= 1
            }
        case .ended: break
        }
    }

    /// Counts the removal of a transport on request, if it was never connected.
    mutating func noteRemoval(of transport: TransportIndex) {
        guard case .connecting = transports[transport].state,
            transports[transport].opened != nil
        else { return }
        let hasPath = !transports[transport].ice.paths.isEmpty
        counters.connections.note(hasPath ? .closedBeforeDTLS : .closedBeforeICE)
    }

    /// Samples the round-trip time that the answer to a consent check shows.
    mutating func sampleRoundTrip(of transport: TransportIndex, at now: Instant) {
        guard !transports[transport].publications.isEmpty,
            let roundTrip = transports[transport].consent.roundTrip(at: now)
        else { return }
        counters.publisherRoundTrips.add(Double(roundTrip) / 1e9)
    }
}
