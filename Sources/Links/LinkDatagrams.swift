import RTP
import SFU
import WorkerInterface

// Datagrams to another node: several records share one, and video waits where the path is narrow.
extension LinkMedia {
    mutating func append(
        _ record: LinkRecord,
        to node: String,
        isVideo: Bool = false,
        at now: Instant
    ) {
        guard let waiting = peers[node]?.records.count else { return }
        record.encode(into: &scratch)
        if waiting > 0, waiting + scratch.count + LinkDatagram.overhead > Self.datagramLength {
            flushRecords(to: node, at: now)
        }
        peers[node]?.append(scratch, isVideo: isVideo)
        scratch.removeAll(keepingCapacity: true)
    }

    mutating func flushRecords(at now: Instant) {
        for node in peers.keys { flushRecords(to: node, at: now) }
    }

    /// Sends the records that wait; `waited` says that they come out of the path's queue.
    ///
    /// Returns whether a datagram left.
    @discardableResult
    mutating func flushRecords(to node: String, waited: Bool = false, at now: Instant) -> Bool {
        guard let datagram = peers[node]?.takeDatagram(waited: waited, at: now) else {
            return false
        }
        counters.datagramsOut &+= 1
        counters.bytesOut &+= UInt64(datagram.bytes.count)
        transmits.append(datagram)
        return true
    }

    /// Lets what waits for the path to a node go, reports arrivals, and sends a probe's padding.
    mutating func expirePath(to node: String, at now: Instant) {
        guard let peer = peers[node] else { return }
        if let report = peer.path.arrivals.takeReport(at: now) {
            append(.arrivals(association: peer.association, report: report), to: node, at: now)
        }
        guard let due = peer.path.bandwidth.deadline(at: now), due <= now else { return }
        peer.path.bandwidth.expire(at: now)
        while let packet = peer.path.takeNext(at: now) {
            flushRecords(to: node, at: now)
            append(packet.record(at: now), to: node, isVideo: true, at: now)
            flushRecords(to: node, waited: true, at: now)
        }
        while let length = peer.path.bandwidth.padding(at: now) {
            flushRecords(to: node, at: now)
            let count = max(length - LinkDatagram.overhead - 3, 1)
            append(.padding(count), to: node, isVideo: true, at: now)
            counters.paddingOut &+= UInt64(count)
            guard flushRecords(to: node, at: now) else { break }
        }
    }

    /// Drops what waits of a publication, to all nodes.
    mutating func dropWaiting(of id: PublicationID) {
        for peer in peers.values { peer.path.drop(id) }
    }

    /// Takes a node's report on the arrivals of our datagrams.
    mutating func take(
        _ report: [UInt8],
        on association: UInt64,
        from node: String,
        at now: Instant
    ) {
        guard let peer = peers[node], peer.sealer.association == association else { return }
        let before = peer.path.bandwidth.limit
        guard peer.path.bandwidth.receive(report: report, at: now) else {
            counters.datagramsRefused &+= 1
            return
        }
        if before != nil || peer.path.bandwidth.limit != nil { share(pathTo: node, at: now) }
    }
}

extension LinkMedia.Peer {
    /// Lets an encoded record wait for the next datagram.
    mutating func append(_ record: [UInt8], isVideo: Bool) {
        records += record
        if isVideo { videoBytes += record.count }
    }

    /// Returns a datagram of the records that wait, and notes that it leaves; `nil` if there are
    /// none.
    mutating func takeDatagram(waited: Bool, at now: Instant) -> LinkTransmit? {
        guard !records.isEmpty else { return nil }
        let other = records.count - videoBytes
        let sealed = sealer.seal(records)
        // Its storage is kept for the next one.
        records.removeAll(keepingCapacity: true)
        videoBytes = 0
        guard let bytes = sealed else { return nil }
        path.bandwidth.sent(
            sealer.counter,
            bytes: bytes.count,
            otherBytes: other == 0 ? 0 : other + LinkDatagram.overhead,
            waited: waited,
            at: now
        )
        return LinkTransmit(address: address, bytes: bytes)
    }

    /// Notes that a datagram has come, for the next report.
    func noteArrival(_ datagram: LinkDatagram, isReason: Bool, at now: Instant) {
        // Those under former keys have numbers of their own.
        guard datagram.association == association else { return }
        path.arrivals.receive(datagram.counter, isReason: isReason, at: now)
    }
}

extension LinkRecord {
    /// Whether its arrival is a reason for a report: reports on reports would never end, but those
    /// on beats show that a path without media is free again.
    var isReported: Bool {
        switch self {
        case .media, .picture, .padding, .beat: true
        case .want, .missing, .keyframe, .echo, .arrivals, .withheld: false
        }
    }
}
