package import RTP
package import WorkerInterface

/// Collection of the counters for the control plane.
extension Core {
    package mutating func report(at now: Instant) -> WorkerStatistics {
        var result = WorkerStatistics()
        result.time = now
        count(into: &result)
        result.drops = DropReason.allCases.map { receiver.drops[$0] }
        result.relayDrops = DropReason.allCases.map { receiver.relayDrops[$0] }
        for offset in 0..<transports.capacity {
            guard let transport = transports.index(at: offset) else { continue }
            result.transports.append(report(transport: transport, at: now))
        }
        // Mirrors are skipped: the home worker reports the publication.
        for offset in 0..<receiver.publications.capacity {
            guard let publication = receiver.publications.index(at: offset),
                receiver.publications[publication].home == nil
            else { continue }
            result.publications.append(report(publication: publication, at: now))
        }
        for offset in 0..<forwarder.slots.capacity {
            guard let slot = forwarder.slots.index(at: offset) else { continue }
            result.slots.append(report(slot: slot))
        }
        return result
    }

    /// Collects the statistics of some transports, without the worker's counters.
    ///
    /// The work is in proportion to the transports asked for, so media waits for no others.
    mutating func report(of ids: [TransportID], at now: Instant) -> WorkerStatistics {
        var result = WorkerStatistics()
        result.time = now
        for id in ids where transports.contains(id) {
            let transport = id.place
            result.transports.append(report(transport: transport, at: now))
            for index in 0..<transports[transport].publications.count {
                let publication = transports[transport].publications[index]
                result.publications.append(report(publication: publication, at: now))
            }
            for index in 0..<transports[transport].slots.count {
                result.slots.append(report(slot: transports[transport].slots[index]))
            }
        }
        return result
    }

    /// Adds the counters of all parts.
    private mutating func count(into result: inout WorkerStatistics) {
        result.datagramsIn = counters.datagramsIn
        result.bytesIn = counters.bytesIn
        result.stunIn = transports.counters.stunIn
        result.dtlsIn = transports.counters.dtlsIn
        result.consentsEnded = transports.counters.consentsEnded
        result.rtpIn = receiver.counters.rtpIn
        result.rtpForwarded = receiver.counters.rtpForwarded
        result.relayedForwarded = receiver.counters.relayedForwarded
        result.keyframeRequestCounts = receiver.counters.keyframeRequestCounts
        result.rtpOut = forwarder.counters.rtpOut
        result.fillersOut = forwarder.counters.fillersOut
        result.paddingOut = forwarder.counters.paddingOut
        result.rtcpIn = rtcp.counters.rtcpIn
        result.rtcpOut = rtcp.counters.rtcpOut
        result.rtxOut = rtcp.counters.rtxOut
        result.rtxInFlight = rtcp.counters.rtxInFlight
        result.rtxOverBudget = rtcp.counters.rtxOverBudget
        result.feedbackOverBudget = rtcp.counters.feedbackOverBudget
        result.relayedIn = relays.counters.relayedIn
        result.relayedOut = relays.counters.relayedOut
        result.datagramsOut =
            transports.counters.datagramsOut &+ forwarder.counters.datagramsOut
            &+ rtcp.counters.datagramsOut
        result.bytesOut = forwarder.counters.bytesOut &+ rtcp.counters.bytesOut
        result.pressure = overload.state
        result.freezes = forwarder.counters.freezes
        result.connections = transports.counters.connections
        result.paths = rtcp.counters.paths
        result.paths.publishers.roundTrip += transports.counters.publisherRoundTrips
    }

    private mutating func report(transport: TransportIndex, at now: Instant) -> TransportStatistics
    {
        var result = TransportStatistics(id: transports[transport].id)
        result.connected = transports[transport].canSend
        result.remote = transports[transport].path?.remote
        result.isTCP = transports[transport].path?.isConnection
        result.srtpProfile = transports[transport].profile?.name
        result.bytesIn = transports[transport].bytesIn
        result.bytesOut = transports.destinations[transport].bytesOut
        result.packetsIn = transports[transport].packetsIn
        result.packetsOut = transports.destinations[transport].packetsOut
        result.roundTripNanoseconds = transports[transport].roundTripNanoseconds
        result.estimate = transports[transport].bandwidth?.usableEstimate(at: now)
        return result
    }

    private mutating func report(
        publication: PublicationIndex,
        at now: Instant
    ) -> PublicationStatistics {
        var result = PublicationStatistics(
            id: receiver.publications.handle(at: publication),
            codec: nil,
            encodings: []
        )
        for position in 0..<receiver.publications[publication].encodings.count {
            let encoding = receiver.publications[publication].encodings[position]
            guard let ssrc = receiver.encodings[encoding].ssrc else { continue }
            if let mapping = receiver.encodings[encoding].mapping {
                result.codec = mapping.format.codec
            }
            var entry = EncodingStatistics(
                layer: receiver.layer(at: position, of: publication, now: now),
                ssrc: ssrc
            )
            entry.packets = receiver.encodings[encoding].reception.packets
            entry.bytes = receiver.encodings[encoding].reception.bytes
            entry.packetsLost = receiver.encodings[encoding].reception.lost
            entry.fractionLost = receiver.encodings[encoding].reception.fractionLost
            entry.jitter = receiver.encodings[encoding].reception.jitter
            entry.nacksSent = receiver.encodings[encoding].nacksSent
            entry.pictureLossesSent = receiver.encodings[encoding].pictureLossesSent
            entry.retransmissionsReceived = receiver.encodings[encoding].retransmissionsReceived
            result.encodings.append(entry)
        }
        return result
    }

    private mutating func report(slot: SlotIndex) -> SlotStatistics {
        var result = SlotStatistics(id: forwarder.slots.handle(at: slot))
        if let publication = forwarder.slots[slot].publication {
            result.subscription = forwarder.slotRecords[slot].subscription
            result.codec = forwarder.slotRecords[slot].outgoing?.format.codec
            if let encoding = forwarder.slotRecords[slot].encodingSent,
                receiver.encodings.isOccupied(encoding)
            {
                let position = receiver.encodings[encoding].position
                let names = receiver.publications[publication].configuration.encodings
                if position < names.count { result.rid = names[position].rid }
            }
        }
        result.packets = forwarder.slots[slot].packets
        result.bytes = forwarder.slots[slot].bytes
        result.packetsLost = forwarder.slotRecords[slot].packetsLost
        result.fractionLost = forwarder.slotRecords[slot].fractionLost
        result.jitter = forwarder.slotRecords[slot].jitter
        result.nacksReceived = forwarder.slotRecords[slot].nacksReceived
        result.pictureLossesReceived = forwarder.slotRecords[slot].pictureLossesReceived
        result.retransmissionsSent = forwarder.slotRecords[slot].retransmissions
        if forwarder.slotRecords[slot].freezes.isMade {
            result.freezes = forwarder.slotRecords[slot].freezes.value.totals.all
        }
        return result
    }
}
