package import RTP
package import WorkerInterface

// Checks of a worker's tables, for the simulator and the fuzzer; outside the packet path.

extension Core {
    /// A worker's leftover objects of ended rooms, in words; empty: none.
    package var leakedObjects: String {
        let counts = [
            ("transports", transports.count), ("publications", receiver.publications.count),
            ("destinations", transports.destinations.count), ("slots", forwarder.slots.count),
            ("records", forwarder.slotRecords.count), ("shares", allocator.shares.count),
            ("encodings", receiver.encodings.count),
            ("fragments", transports.fragments.count), ("mirrors", receiver.mirrors.count),
            ("paths", transports.paths.count),
            // One is kept for RTCP.
            ("packets", receiver.pool.used - 1),
        ]
        return counts.filter { $0.1 != 0 }.map { "\($0.1) \($0.0)" }.joined(separator: ", ")
    }

    /// The first table that exceeds its limit, in words.
    package var excess: String? {
        let count = transports.count
        var tables: [(name: String, count: Int, limit: Int)] = [
            ("paths", transports.paths.count, count * transports.limits.pathsPerTransport),
            // In addition one from before the last ICE restart.
            ("fragments", transports.fragments.count, 2 * count),
            ("packets", receiver.pool.used, transports.limits.packetPool + 1),
            ("packets for new listeners", forwarder.replays.count, 65_536),
        ]
        for offset in 0..<transports.capacity {
            guard let index = transports.index(at: offset) else { continue }
            let paths = transports[index].ice.paths.count
            let streams = transports[index].streams.count
            let unsignalled = transports[index].unsignalledSSRCs.count
            tables += [
                ("paths of a transport", paths, transports.limits.pathsPerTransport),
                ("streams of a transport", streams, transports.limits.streamsPerTransport),
                ("SSRCs without a stream", unsignalled, Transport.unsignalledLimit),
            ]
        }
        let excess = tables.first { $0.count > $0.limit }
        return excess.map { "\($0.count) \($0.name), more than \($0.limit)" }
    }

    /// All transports, and those whose media flows.
    package var allTransports: Set<TransportID> {
        Set(
            (0..<transports.transports.capacity).compactMap { offset in
                transports.transports.index(at: offset).map { transports[$0].id }
            }
        )
    }

    package var connectedTransports: Set<TransportID> {
        allTransports.filter { transports[$0.place].state == .connected }
    }

    /// State of every video slot, to debug a failed history.
    package var videoSlots: [String] {
        mutating get {
            var found: [String] = []
            for offset in 0..<forwarder.slots.capacity {
                guard let slot = forwarder.slots.index(at: offset),
                    let words = describe(videoSlot: slot)
                else { continue }
                found.append(words)
            }
            return found
        }
    }

    private mutating func describe(videoSlot slot: SlotIndex) -> String? {
        guard forwarder.slots[slot].kind == .video else { return nil }
        let canSend = transports[forwarder.slots[slot].transport].canSend
        var words = "slot \(slot): \(forwarder.slots[slot].source)"
        words += ", open \(forwarder.slots[slot].isOpen)"
        words += ", target \(forwarder.slotRecords[slot].target as Any), canSend \(canSend)"
        guard let publication = forwarder.slots[slot].publication else { return words }
        words += "; publication \(publication)"
        words += ", open \(receiver.publications[publication].isOpen)"
        for position in 0..<receiver.publications[publication].encodings.count {
            let encoding = receiver.publications[publication].encodings[position]
            words += "; encoding \(encoding)"
            words += receiver.encodings[encoding].isLive ? ", live" : ""
            words += receiver.encodings[encoding].isOffered ? ", offered" : ""
            words += ", \(receiver.encodings[encoding].rate)"
            words += ", \(receiver.encodings[encoding].keyframes)"
        }
        return words
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
        let transport = id.place
        transports.connect(transport, profile: profile, keys: keys, at: now, into: &output)
        transports.grantConsent(transport, at: now)
        routeFindings(at: now)
        return transports[transport].canSend
    }
}
