package import RTP
package import WorkerInterface

// Checks of a worker's tables, for the simulator and the fuzzer; outside the packet path.

extension Core {
    /// A worker's leftover objects of ended rooms, in words; empty: none.
    package var leakedObjects: String {
        let counts = [
            ("transports", transports.count), ("publications", publications.count),
            ("destinations", transports.destinations.count), ("slots", slots.count),
            ("records", slotRecords.count), ("encodings", encodings.count),
            ("fragments", transports.fragments.count), ("mirrors", mirrors.count),
            ("paths", transports.paths.count),
            // One is kept for RTCP.
            ("packets", pool.used - 1),
        ]
        return counts.filter { $0.1 != 0 }.map { "\($0.1) \($0.0)" }.joined(separator: ", ")
    }

    /// The first table that exceeds its limit, in words.
    package var excess: String? {
        let count = transports.count
        var tables: [(name: String, count: Int, limit: Int)] = [
            ("paths", transports.paths.count, count * limits.pathsPerTransport),
            // In addition one from before the last ICE restart.
            ("fragments", transports.fragments.count, 2 * count),
            ("packets", pool.used, limits.packetPool + 1),
            ("packets for new listeners", replays.count, 65_536),
        ]
        for index in 0..<transports.capacity where transports.isOccupied(index) {
            let paths = transports[index].ice.paths.count
            let streams = transports[index].streams.count
            let unsignalled = transports[index].unsignalledSSRCs.count
            tables += [
                ("paths of a transport", paths, limits.pathsPerTransport),
                ("streams of a transport", streams, limits.streamsPerTransport),
                ("SSRCs without a stream", unsignalled, Transport.unsignalledLimit),
            ]
        }
        let excess = tables.first { $0.count > $0.limit }
        return excess.map { "\($0.count) \($0.name), more than \($0.limit)" }
    }

    /// State of every video slot, to debug a failed history.
    package var videoSlots: [String] {
        (0..<slots.capacity).filter { slots.isOccupied($0) && slots[$0].kind == .video }.map {
            let publication = Int(slots[$0].publication)
            let canSend = transports[slots[$0].transport].canSend
            var words = "slot \($0): \(slots[$0].source), open \(slots[$0].isOpen)"
            words += ", target \(slotRecords[$0].target), canSend \(canSend)"
            guard publication >= 0 else { return words }
            words += "; publication \(publication), open \(publications[publication].isOpen)"
            for position in 0..<publications[publication].encodings.count {
                let encoding = Int(publications[publication].encodings[position])
                words += "; encoding \(encoding)\(encodings[encoding].isLive ? ", live" : "")"
                words += "\(encodings[encoding].isOffered ? ", offered" : "")"
                words += ", \(encodings[encoding].rate), \(encodings[encoding].keyframes)"
            }
            return words
        }
    }
}

extension Core {
    /// Connects a transport as if ICE and DTLS were done, so that a fuzzer begins with media.
    ///
    /// Returns whether it can be sent media.
    package mutating func connectUnasked(
        _ id: TransportID,
        profile: SRTPProfile,
        keys: SRTPKeys,
        at now: Instant,
        into output: inout Batch
    ) -> Bool {
        let transport = Int(id.index)
        transports.connect(transport, profile: profile, keys: keys, at: now, into: &output)
        transports.grantConsent(transport, at: now)
        routeFindings(at: now)
        return transports[transport].canSend
    }
}
