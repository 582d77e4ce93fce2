package import RTP
import WorkerInterface

/// Relay between workers: a room spans them, so received packets go to those with subscribers.
extension Core {
    /// Relays the received batch to its mirrors, and sends requests of the mirrors here to their
    /// homes.
    ///
    /// Call it once for each batch, before `flush`, and publish the port at once: the other workers
    /// then send while this one does.
    package mutating func relay(into port: inout RelayPort, at now: Instant) {
        if mirrorsDue.isDue(at: now) { expireMirrors(into: &port, at: now) }
        guard relayedCount > 0 else { return }
        precondition(!cursor.isUnderWay, "a batch is under way")
        if !held.isEmpty { releaseHeld(into: &port, at: now) }
        for index in 0..<queued.count {
            let publication = Int(queued[index])
            // No packet enters a ring from which a fence would have to recall it.
            guard publications[publication].isOpen else { continue }
            for mirror in 0..<publications[publication].mirrors.count {
                relay(publication, to: mirror, into: &port)
            }
        }
    }

    private mutating func relay(
        _ publication: Int,
        to mirror: Int,
        into port: inout RelayPort
    ) {
        var destination = publications[publication].mirrors[mirror]
        let target = destination.target
        guard port.reaches(target.worker), destination.heldUntil == nil else { return }
        var place = publications[publication].firstArrival
        while place >= 0 {
            write(place, of: publication, to: &destination, into: &port)
            // `write` counts a loss on the way out itself, as a socket counts what it refuses.
            if !pool[place].flags.contains(.skipped) { pool[place].drop = nil }
            place = pool[place].next
        }
        publications[publication].mirrors[mirror] = destination
    }

    /// Writes one packet into the ring to a mirror's worker.
    mutating func write(
        _ place: Int32,
        of publication: Int,
        to destination: inout Publication.RelayDestination,
        into port: inout RelayPort
    ) {
        let target = destination.target
        let source = publications.handle(at: publication)
        let encoding = Int(pool[place].encoding)
        let length = Int(pool[place].payloadOffset) + Int(pool[place].payloadLength)
        var message = RelayMessage(
            .packet,
            to: target.publication,
            from: source,
            position: encodings[encoding].position
        )
        if let best = highestLive(of: publication) {
            message.best = UInt8(clamping: encodings[Int(best)].position)
        }
        message.followsGap = destination.hasGap
        message.length = UInt16(clamping: length)
        message.width = UInt16(clamping: encodings[encoding].width)
        message.height = UInt16(clamping: encodings[encoding].height)
        let layer = LayerPoint(index: Int(pool[place].layer))
        message.layerSize = encodings[encoding].layers.size(of: layer.spatial)
        message.captured = encodings[encoding].captured
        message.info = pool[place]
        let packets = pool.packets
        let packet = packets.bytes(at: place, count: length)
        destination.hasGap = !port.write(message, packet, to: target.worker)
        if destination.hasGap {
            drops.count(.relayQueueFull)
        } else {
            statistics.relayedOut &+= 1
        }
    }

    /// Returns the highest encoding that is live.
    func highestLive(of publication: Int) -> Int32? {
        var index = publications[publication].options.count
        while index > 0 {
            index -= 1
            let encoding = publications[publication].options[index].target.encoding
            if encodings[Int(encoding)].isLive { return encoding }
        }
        return nil
    }

    /// Receives packets and requests from other workers, as many as a batch may hold.
    ///
    /// Flush after it. Returns `true` if more is waiting.
    package mutating func receive(from port: inout RelayPort, at now: Instant) -> Bool {
        guard port.workers > 1 else { return false }
        let first = port.takeTurn()
        for step in 0..<port.workers - 1 {
            let offset = 1 + (first - 1 + step) % (port.workers - 1)
            let other = (port.worker + offset) % port.workers
            drain(&port[reader: other], from: other, at: now)
            port[reader: other].release()
            if arrivalCount >= Self.batchCapacity { return true }
        }
        return false
    }

    private mutating func drain(_ reader: inout RelayReader, from other: Int, at now: Instant) {
        // Requests add no arrival, so they have a bound of their own.
        for _ in 0..<RelayRing.capacity where arrivalCount < Self.batchCapacity {
            guard !reader.isEmpty() else { return }
            let message = reader.message
            switch message.kind {
            case .packet: admit(message, of: reader, from: other)
            case .keyframeRequested: noteKeyframeRequest(message, at: now)
            case .heldAudioRequest: notePrerollRequest(message, from: other)
            }
            reader.advance()
        }
    }

    /// Handles a keyframe request from a mirror like one of the subscribers here.
    private mutating func noteKeyframeRequest(_ message: RelayMessage, at now: Instant) {
        guard publications.contains(message.target) else { return }
        let publication = Int(message.target.index)
        let position = Int(message.position)
        guard publications[publication].home == nil, publications[publication].isOpen,
            position < publications[publication].encodings.count
        else { return }
        let encoding = Int(publications[publication].encodings[position])
        guard encodings[encoding].kind == .video else { return }
        requestKeyframe(of: encoding, at: now)
    }

    /// Sets the mirrors that a home's packets are relayed to from the next batch on.
    mutating func relay(_ id: PublicationID, to targets: [RelayTarget]) {
        guard publications.contains(id), publications[Int(id.index)].home == nil else { return }
        setMirrors(of: Int(id.index), to: targets)
    }

    mutating func setMirrors(of publication: Int, to targets: [RelayTarget]) {
        if !publications[publication].mirrors.isEmpty { relayedCount -= 1 }
        // Targets that stay listed keep their state.
        for mirror in (0..<publications[publication].mirrors.count).reversed()
        where !targets.contains(publications[publication].mirrors[mirror].target) {
            publications[publication].mirrors.remove(swappingAt: mirror)
        }
        for target in targets where !hasMirror(publication, target) {
            publications[publication].mirrors.append(Publication.RelayDestination(target: target))
        }
        if !publications[publication].mirrors.isEmpty { relayedCount += 1 }
    }

    private func hasMirror(_ publication: Int, _ target: RelayTarget) -> Bool {
        for mirror in 0..<publications[publication].mirrors.count
        where publications[publication].mirrors[mirror].target == target { return true }
        return false
    }
}
