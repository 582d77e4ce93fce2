package import RTP
package import WorkerInterface

/// Collection of the counters for the control plane.
extension Core {
    package func report(at now: Instant) -> WorkerStatistics {
        var result = statistics
        result.stunIn = transports.counters.stunIn
        result.dtlsIn = transports.counters.dtlsIn
        result.datagramsOut &+= transports.counters.datagramsOut
        result.consentsEnded = transports.counters.consentsEnded
        result.drops = DropReason.allCases.map { drops[$0] }
        result.relayDrops = DropReason.allCases.map { relayDrops[$0] }
        for index in 0..<transports.capacity where transports.isOccupied(index) {
            result.transports.append(report(transport: index))
        }
        // Mirrors are skipped: the home worker reports the publication.
        for index in 0..<publications.capacity
        where publications.isOccupied(index) && publications[index].home == nil {
            result.publications.append(report(publication: index, at: now))
        }
        for index in 0..<slots.capacity where slots.isOccupied(index) {
            result.slots.append(report(slot: index))
        }
        return result
    }

    private func report(transport: Int) -> TransportStatistics {
        var result = TransportStatistics(id: transports[transport].id)
        result.connected = transports[transport].canSend
        result.remote = transports[transport].path?.remote
        result.srtpProfile = transports[transport].profile?.name
        result.bytesIn = transports[transport].bytesIn
        result.bytesOut = transports.destinations[transport].bytesOut
        result.packetsIn = transports[transport].packetsIn
        result.packetsOut = transports.destinations[transport].packetsOut
        result.roundTripNanoseconds = transports[transport].roundTripNanoseconds
        return result
    }

    private func report(publication: Int, at now: Instant) -> PublicationStatistics {
        var result = PublicationStatistics(
            id: publications.handle(at: publication),
            codec: nil,
            encodings: []
        )
        for position in 0..<publications[publication].encodings.count {
            let encoding = Int(publications[publication].encodings[position])
            guard let ssrc = encodings[encoding].ssrc else { continue }
            if let mapping = encodings[encoding].mapping { result.codec = mapping.format.codec }
            var entry = EncodingStatistics(
                layer: layer(at: position, of: publication, now: now),
                ssrc: ssrc
            )
            entry.packets = encodings[encoding].reception.packets
            entry.bytes = encodings[encoding].reception.bytes
            entry.packetsLost = encodings[encoding].reception.lost
            entry.jitter = encodings[encoding].reception.jitter
            entry.nacksSent = encodings[encoding].nacksSent
            entry.pictureLossesSent = encodings[encoding].pictureLossesSent
            entry.retransmissionsReceived = encodings[encoding].retransmissionsReceived
            result.encodings.append(entry)
        }
        return result
    }

    private func report(slot: Int) -> SlotStatistics {
        var result = SlotStatistics(id: slots.handle(at: slot))
        let publication = Int(slots[slot].publication)
        if publication >= 0 {
            result.subscription = slotRecords[slot].subscription
            result.codec = slotRecords[slot].outgoing?.format.codec
            if slotRecords[slot].encodingSent != .max,
                encodings.isOccupied(Int(slotRecords[slot].encodingSent))
            {
                let position = encodings[Int(slotRecords[slot].encodingSent)].position
                let names = publications[publication].configuration.encodings
                if position < names.count { result.rid = names[position].rid }
            }
        }
        result.packets = slots[slot].packets
        result.bytes = slots[slot].bytes
        result.packetsLost = slotRecords[slot].packetsLost
        result.fractionLost = slotRecords[slot].fractionLost
        result.jitter = slotRecords[slot].jitter
        result.nacksReceived = slotRecords[slot].nacksReceived
        result.pictureLossesReceived = slotRecords[slot].pictureLossesReceived
        result.retransmissionsSent = slotRecords[slot].retransmissions
        return result
    }
}
