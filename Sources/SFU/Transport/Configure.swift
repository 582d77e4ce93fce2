import RTP
import WorkerInterface

/// Creation and renegotiation of transports.
extension Transports {
    /// Creates a transport, or applies a renegotiation or an ICE restart to it.
    mutating func configure(
        _ id: TransportID,
        _ configuration: TransportConfiguration,
        at now: Instant
    ) {
        let transport = id.place
        if transports.contains(id) {
            let ice = configuration.ice
            if ice != transports[transport].ice.credentials {
                forgetFragments(of: transport, keepingCurrent: true)
                transports[transport].ice.restart(with: ice)
            }
            transports[transport].configuration = configuration
        } else {
            let ssrc = SSRC(rawValue: UInt32(truncatingIfNeeded: random.next()) | 1)
            transports.insert(Transport(id, configuration, ssrc: ssrc, at: now), at: id)
            destinations.insert(Destination(), at: id)
        }
        fragments[fragmentKey(transports[transport].ice.localFragment.span)] = id
        configureExtensions(of: transport)
        if transports[transport].bandwidth == nil, configuration.reportsOnItsPath {
            transports[transport].bandwidth = PathBandwidth(at: now)
        }
        // Each slot keeps its own configuration.
        transports[transport].configuration.slots = []
        schedule(transport, at: now)
    }

    private mutating func configureExtensions(of transport: TransportIndex) {
        var union = ExtensionMap()
        var sendsFeedback = false
        var sendsREMB = false
        for publication in transports[transport].configuration.publications {
            for kind in ExtensionKind.allCases where publication.extensions[kind] != 0 {
                union[kind] = publication.extensions[kind]
            }
            for format in publication.formats {
                if format.feedback.contains(.transportWide) { sendsFeedback = true }
                if format.feedback.contains(.remb) { sendsREMB = true }
            }
        }
        transports[transport].extensions = union
        transports[transport].sendsTransportFeedback =
            sendsFeedback && union[.transportSequenceNumber] != 0
        transports[transport].sendsREMB =
            sendsREMB && !transports[transport].sendsTransportFeedback
    }

    /// Removes the transport's local ICE username fragments from the lookup: the one before the
    /// last restart and, unless `keepingCurrent`, the current one.
    mutating func forgetFragments(of transport: TransportIndex, keepingCurrent: Bool) {
        let current = transports[transport].ice.localFragment
        if let old = transports[transport].ice.previous, old.localFragment != current {
            fragments[fragmentKey(old.localFragment.span)] = nil
        }
        guard !keepingCurrent else { return }
        fragments[fragmentKey(current.span)] = nil
    }
}
