package import RTP
import SFU
import WorkerInterface

// Media from other nodes.
extension LinkMedia {
    mutating func setGate(of id: PublicationID, open: Bool, at now: Instant) {
        guard receiving[id] != nil, receiving[id]?.isOpen != open else { return }
        receiving[id]?.isOpen = open
        guard open else { return }
        // Packets sent before belong to an earlier right, however long they were on their way.
        receiving[id]?.revision &+= 1
        receiving[id]?.isHeard = false
        receiving[id]?.nextWant = now
    }

    /// Wants of a publication what the workers here want, and the nodes to which it goes on.
    mutating func reviewWant(of id: PublicationID, at now: Instant) {
        guard let known = receiving[id] else { return }
        let encodings = known.own | (sending[id]?.wanted ?? 0)
        guard encodings != known.encodings else { return }
        core.beginLinked(encodings & ~known.encodings, of: id)
        receiving[id]?.encodings = encodings
        receiving[id]?.nextWant = now
    }

    /// Takes a publication from another node than before; its numbering is the origin's, and goes
    /// on.
    ///
    /// The former one sends it until the first packet of the new one has come.
    mutating func take(_ id: PublicationID, from node: String, at now: Instant) {
        guard let former = receiving[id]?.node, former != node else { return }
        leaveFormer(of: id, at: now)
        receiving[id]?.former = (former, nil)
        receiving[id]?.node = node
        receiving[id]?.isHeard = false
        setWithheld(id, 0, at: now)
    }

    /// Wants nothing more of a publication from the node that it came from before.
    mutating func leaveFormer(of id: PublicationID, at now: Instant) {
        guard var left = receiving[id], let former = left.former, former.until == nil else {
            return
        }
        let end = now.advanced(milliseconds: Self.formerMilliseconds)
        receiving[id]?.former = (former.node, end)
        left.node = former.node
        left.encodings = 0
        want(left, as: id, at: now)
    }

    mutating func want(_ receiving: Receiving, as id: PublicationID, at now: Instant) {
        let record = LinkRecord.want(
            receiving.name,
            handle: id,
            revision: receiving.revision,
            encodings: receiving.isOpen ? receiving.encodings : 0
        )
        append(record, to: receiving.node, at: now)
    }

    mutating func tellWants(at now: Instant) {
        for (id, wish) in receiving where wish.nextWant <= now {
            want(wish, as: id, at: now)
            let isWaiting = !wish.isHeard && wish.isOpen && wish.encodings != 0
            receiving[id]?.nextWant = now.advanced(
                milliseconds: isWaiting ? Self.waitingMilliseconds : Self.refreshMilliseconds
            )
        }
    }

    mutating func take(
        _ header: LinkedMediaHeader,
        _ packet: [UInt8],
        from node: String,
        at now: Instant
    ) {
        guard let linked = linked(header, from: node, at: now) else { return }
        if !core.hasRoom { flush(at: now) }
        if !core.receiveLinked(linked, packet.span, at: now) { counters.packetsRefused &+= 1 }
    }

    /// Returns what the core has to know of a packet, counted; `nil` if it has no right to come.
    mutating func linked(
        _ header: LinkedMediaHeader,
        from node: String,
        at now: Instant
    ) -> LinkedPacket? {
        counters.packetsIn &+= 1
        guard let known = receiving[header.handle], known.comes(from: node, at: now), known.isOpen,
            known.revision == header.revision
        else {
            counters.packetsUnwanted &+= 1
            return nil
        }
        if known.node == node {
            receiving[header.handle]?.isHeard = true
            leaveFormer(of: header.handle, at: now)
        } else if known.isHeard, !isPresent(header) {
            // The publisher has begun another numbering, which the present way is ahead with.
            counters.packetsUnwanted &+= 1
            return nil
        }
        let way = (peers[node]?.roundTrip ?? 0) / 2
        func local(_ age: Int64) -> Instant {
            Instant(nanoseconds: now.nanoseconds &- age &* 1_000 &- way)
        }
        var linked = LinkedPacket(
            publication: header.handle,
            position: Int(header.position),
            epoch: header.epoch,
            number: header.number,
            arrival: local(Int64(header.age))
        )
        if let capture = header.capture {
            linked.captured = (local(Int64(capture.age)), capture.timestamp)
        }
        return linked
    }

    /// Whether a packet has the numbering that the present way has come to.
    private func isPresent(_ header: LinkedMediaHeader) -> Bool {
        core.linkedEpoch(of: header.handle, position: Int(header.position)) == header.epoch
    }

    /// Processes a received datagram; one that is not genuine is counted.
    package mutating func receive(_ datagram: [UInt8], at now: Instant) {
        guard let sealed = LinkDatagram(datagram),
            let text = openers[sealed.association]?.open(sealed),
            let node = openers[sealed.association]?.node
        else {
            counters.datagramsRefused &+= 1
            return
        }
        counters.datagramsIn &+= 1
        counters.bytesIn &+= UInt64(datagram.count)
        guard let records = LinkRecord.read(text) else {
            counters.datagramsRefused &+= 1
            return
        }
        let isReason = records.contains(where: \.isReported)
        peers[node]?.noteArrival(sealed, isReason: isReason, at: now)
        for record in records { take(record, from: node, at: now) }
    }

    mutating func take(_ record: LinkRecord, from node: String, at now: Instant) {
        switch record {
        case .media(let header, let packet): take(header, packet, from: node, at: now)
        case .want(let name, let handle, let revision, let encodings):
            let subscriber = Sending.Subscriber(
                handle: handle,
                revision: revision,
                encodings: encodings,
                heard: now
            )
            take(want: name, subscriber, of: node, at: now)
        case .missing(let handle, let position, let epoch, let numbers):
            let subscription = Subscription(node: node, handle: handle)
            repeatPackets(of: subscription, position: position, epoch: epoch, numbers, at: now)
        case .keyframe(let handle, let position):
            guard let id = subscriptions[Subscription(node: node, handle: handle)] else { break }
            core.requestLinkedKeyframe(of: id, position: Int(position), at: now)
        case .beat(let stamp):
            append(.echo(stamp: stamp, granted: !denied.contains(node)), to: node, at: now)
        case .echo(let stamp, let isGranted):
            let sent = Instant(nanoseconds: Int64(truncatingIfNeeded: stamp))
            takeEcho(sent, isGranted, from: node, at: now)
        case .arrivals(let association, let report):
            take(report, on: association, from: node, at: now)
        case .padding: break
        case .picture(let header, let covered, let isLast, let packet):
            take(header, covered: Int(covered), isLast: isLast, packet, from: node, at: now)
        case .withheld(let handle, let encodings):
            take(withheld: encodings, of: handle, from: node, at: now)
        }
    }

    /// Extends the lease on a node's rooms, counted from the sending of the beat that was echoed.
    mutating func takeEcho(
        _ sent: Instant,
        _ isGranted: Bool,
        from node: String,
        at now: Instant
    ) {
        guard sent <= now, sent > peers[node]?.echoed ?? Instant(nanoseconds: 0) else { return }
        peers[node]?.echoed = sent
        peers[node]?.isGranting = isGranted
        peers[node]?.roundTrip = now.nanoseconds(since: sent)
        reviewLife(of: node, at: now)
        guard isGranted, let lease = leases[node] else { return }
        leaseEnds.append((lease, sent.advanced(milliseconds: Self.leaseMilliseconds)))
    }

    mutating func reviewLife(of node: String, at now: Instant) {
        guard let peer = peers[node] else { return }
        let isAlive =
            peer.echoed.map { now.milliseconds(since: $0) < Self.leaseMilliseconds } ?? false
        guard isAlive != peer.isAlive else { return }
        peers[node]?.isAlive = isAlive
        events.append(.link(.media(node, isAlive: isAlive)))
    }
}
