import RTP
import SFU
import WorkerInterface

// Media for other nodes.
extension LinkMedia {
    mutating func send(
        _ id: PublicationID,
        _ name: StreamName,
        to nodes: Set<String>,
        at now: Instant
    ) {
        guard !nodes.isEmpty else { return endSending(id, at: now) }
        if sending[id] == nil { sending[id] = Sending(nodes: nodes) }
        // Under a former name it is known to nodes that have not heard of this one.
        names[name] = id
        // The last one is the present home's.
        sending[id]?.names.removeAll { $0 == name }
        sending[id]?.names.append(name)
        sending[id]?.nodes = nodes
        for (node, subscriber) in sending[id]?.subscribers ?? [:]
        where sending[id]?.mayGo(to: node) == false {
            sending[id]?.subscribers[node] = nil
            subscriptions[Subscription(node: node, handle: subscriber.handle)] = nil
            peers[node]?.path.drop(id)
        }
        reviewExport(of: id, at: now)
    }

    mutating func endSending(_ id: PublicationID, at now: Instant) {
        guard let ended = sending.removeValue(forKey: id) else { return }
        for name in ended.names where names[name] == id { names[name] = nil }
        for (node, subscriber) in ended.subscribers {
            subscriptions[Subscription(node: node, handle: subscriber.handle)] = nil
            peers[node]?.path.drop(id)
        }
        reviewExport(of: id, at: now)
    }

    /// Follows what other nodes want of a publication; one of another node is wanted there.
    private mutating func reviewExport(of id: PublicationID, at now: Instant) {
        core.setExported(id, sending[id]?.carried ?? 0)
        reviewWant(of: id, at: now)
    }

    mutating func take(
        want name: StreamName,
        _ wish: Sending.Subscriber,
        of node: String,
        at now: Instant
    ) {
        var subscriber = wish
        // The order to send may come later than the want: it is repeated.
        guard let id = names[name], let known = sending[id], known.mayGo(to: node) else { return }
        let before = known.subscribers[node]
        if let before, before.handle == subscriber.handle {
            let step = Int16(bitPattern: subscriber.revision &- before.revision)
            guard step >= 0 else { return }
            subscriber.repeatedUntil = before.repeatedUntil
        } else if let before {
            subscriptions[Subscription(node: node, handle: before.handle)] = nil
            peers[node]?.path.drop(id)
        }
        let encodings = subscriber.encodings
        subscriber.withheld = withheldAtFirst(encodings, of: id, after: before, to: node)
        peers[node]?.path.drop(id, except: subscriber.carried)
        sending[id]?.subscribers[node] = subscriber
        subscriptions[Subscription(node: node, handle: subscriber.handle)] = id
        reviewExport(of: id, at: now)
        if before?.encodings != subscriber.encodings {
            share(pathTo: node, at: now)
            let had = before?.handle == subscriber.handle ? before?.encodings ?? 0 : 0
            showPicture(of: id, among: subscriber.encodings & ~had, to: node, at: now)
            if had & 1 == 0, subscriber.encodings & LinkOrder.heldAudio != 0 {
                sendHeldAudio(of: id, to: node, at: now)
            }
        }
        tellWithheld(of: id, to: node, at: now)
    }

    /// Drops the wants that have not been refreshed.
    mutating func expireWants(at now: Instant) {
        for (id, known) in sending {
            for (node, subscriber) in known.subscribers
            where now.milliseconds(since: subscriber.heard) >= Self.wantMilliseconds {
                sending[id]?.subscribers[node] = nil
                subscriptions[Subscription(node: node, handle: subscriber.handle)] = nil
                peers[node]?.path.drop(id)
            }
            if sending[id]?.subscribers.count != known.subscribers.count {
                reviewExport(of: id, at: now)
            }
        }
    }

    /// Sends the batch to the nodes that want it.
    mutating func export(at now: Instant) {
        for (packet, bytes) in core.takeExports() {
            guard let known = sending[packet.publication] else { continue }
            for (node, subscriber) in known.subscribers
            where subscriber.carried & 1 << UInt8(clamping: packet.position) != 0 {
                transmit(packet, bytes, to: node, subscriber, at: now)
            }
        }
    }

    /// Sends a packet to a node, or lets it wait for its turn where the path is narrow.
    mutating func transmit(
        _ packet: LinkedPacket,
        _ bytes: [UInt8],
        to node: String,
        _ subscriber: Sending.Subscriber,
        isRepeated: Bool = false,
        at now: Instant
    ) {
        guard bytes.count <= Self.packetLimit else {
            counters.packetsTooLong &+= 1
            return
        }
        guard let path = peers[node]?.path else { return }
        let header = header(of: packet, for: subscriber, at: now)
        guard packet.isVideo, !path.bandwidth.hasRoom(at: now) else {
            counters.packetsOut &+= 1
            return append(
                .media(header, packet: bytes),
                to: node,
                isVideo: packet.isVideo,
                at: now
            )
        }
        let waiting = LinkPath.Waiting(
            publication: packet.publication,
            header: header,
            bytes: bytes,
            since: now
        )
        if path.enqueue(waiting, isRepeated: isRepeated) {
            counters.packetsOut &+= 1
        } else {
            counters.packetsCrowded &+= 1
        }
    }

    func header(
        of packet: LinkedPacket,
        for subscriber: Sending.Subscriber,
        at now: Instant
    ) -> LinkedMediaHeader {
        var header = LinkedMediaHeader(
            handle: subscriber.handle,
            position: UInt8(clamping: packet.position),
            revision: subscriber.revision,
            age: UInt32(clamping: now.nanoseconds(since: packet.arrival) / 1_000),
            epoch: packet.epoch,
            number: packet.number
        )
        header.capture = packet.captured.map {
            LinkedMediaHeader.Capture(
                age: Int32(clamping: now.nanoseconds(since: $0.instant) / 1_000),
                timestamp: $0.timestamp
            )
        }
        return header
    }

    mutating func repeatPackets(
        of subscription: Subscription,
        position: UInt8,
        epoch: UInt32,
        _ numbers: [UInt16],
        at now: Instant
    ) {
        let node = subscription.node
        guard let id = subscriptions[subscription],
            let subscriber = sending[id]?.subscribers[node],
            subscriber.carried & 1 << position != 0, let path = peers[node]?.path
        else { return }
        for number in numbers {
            let found = core.repeated(
                id,
                position: Int(position),
                epoch: epoch,
                number: number,
                ageMilliseconds: Self.repairMilliseconds,
                at: now
            )
            guard let (packet, bytes) = found,
                !packet.isVideo || path.bandwidth.mayRepeat(bytes: bytes.count, at: now)
            else { continue }
            counters.packetsRepeated &+= 1
            transmit(packet, bytes, to: node, subscriber, isRepeated: true, at: now)
        }
    }
}
