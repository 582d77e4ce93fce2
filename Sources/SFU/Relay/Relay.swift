import RTP
import WorkerInterface

/// Relay between workers: a room spans them, so received packets go to those with subscribers.
extension Relays {
    /// Relays the received batch to its mirrors, and sends requests of the mirrors here to their
    /// homes.
    ///
    /// Call it once for each batch, before `flush`, and publish the port at once: the other workers
    /// then send while this one does.
    mutating func relay(
        into port: inout RelayPort,
        at now: Instant,
        _ transports: inout Transports,
        _ receiver: inout Receiver,
        _ forwarder: inout Forwarder,
        _ allocator: inout LayerAllocator
    ) {
        if receiver.mirrorsDue.isDue(at: now) {
            expireMirrors(into: &port, at: now, &transports, &receiver, &forwarder, &allocator)
        }
        guard relayedCount > 0 else { return }
        if !held.isEmpty { releaseHeld(into: &port, at: now, &receiver) }
        if !withholdings.isEmpty { tellWithholdings(into: &port, receiver) }
        // The rest waits for the next batch: live packets need their room in the rings.
        var room = Self.pictureMessages
        while !pictureRequests.isEmpty, room > 0 {
            let publication = pictureRequests.removeLast()
            room &-= answerPictureRequests(of: publication, into: &port, at: now, &receiver)
        }
        for index in 0..<receiver.queued.count {
            let publication = receiver.queued[index]
            // No packet enters a ring from which a fence would have to recall it.
            guard receiver.publications[publication].isOpen else { continue }
            for mirror in 0..<receiver.publications[publication].mirrors.count {
                relay(publication, to: mirror, into: &port, &receiver)
            }
        }
    }

    private mutating func relay(
        _ publication: PublicationIndex,
        to mirror: Int,
        into port: inout RelayPort,
        _ receiver: inout Receiver
    ) {
        var destination = receiver.publications[publication].mirrors[mirror]
        let target = destination.target
        guard port.reaches(target.worker), destination.heldUntil == nil else { return }
        // A warm picture of another node has come before its live packets, or will not come.
        if receiver.publications[publication].isLinked { destination.wantsPicture = false }
        var next = receiver.publications[publication].firstArrival
        while let place = next {
            write(place, of: publication, to: &destination, into: &port, &receiver)
            // `write` counts a loss on the way out itself, as a socket counts what it refuses.
            if !receiver.pool[place].flags.contains(.skipped) { receiver.pool[place].drop = nil }
            next = receiver.pool[place].next.value
        }
        receiver.publications[publication].mirrors[mirror] = destination
    }

    /// Writes one packet into the ring to a mirror's worker.
    mutating func write(
        _ place: PacketPlace,
        of publication: PublicationIndex,
        to destination: inout Publication.RelayDestination,
        into port: inout RelayPort,
        _ receiver: inout Receiver
    ) {
        let target = destination.target
        var message = message(place, of: publication, to: target, receiver)
        message.followsGap = destination.hasGap
        let packets = receiver.pool.packets
        let packet = packets.bytes(at: place, count: Int(message.length))
        destination.hasGap = !port.write(message, packet, to: target.worker)
        if destination.hasGap {
            receiver.drops.count(.relayQueueFull)
        } else {
            counters.relayedOut &+= 1
        }
    }

    /// Returns the message for one packet, with what the home knows of its encoding.
    @inline(__always)
    func message(
        _ place: PacketPlace,
        of publication: PublicationIndex,
        to target: RelayTarget,
        _ receiver: borrowing Receiver
    ) -> RelayMessage {
        let encoding = receiver.pool[place].encoding
        let length =
            Int(receiver.pool[place].payloadOffset) + Int(receiver.pool[place].payloadLength)
        var message = RelayMessage(
            .packet,
            to: target.publication,
            from: receiver.publications.handle(at: publication),
            position: receiver.encodings[encoding].position
        )
        if let best = receiver.highestLive(of: publication) {
            message.best = UInt8(clamping: receiver.encodings[best].position)
        }
        message.length = UInt16(clamping: length)
        message.width = UInt16(clamping: receiver.encodings[encoding].width)
        message.height = UInt16(clamping: receiver.encodings[encoding].height)
        let layer = LayerPoint(index: Int(receiver.pool[place].layer))
        message.layerSize = receiver.encodings[encoding].layers.size(of: layer.spatial)
        message.captured = receiver.encodings[encoding].captured
        message.info = receiver.pool[place]
        return message
    }

    /// Receives packets and requests from other workers, as many as a batch may hold.
    ///
    /// Flush after it. Returns `true` if more is waiting.
    mutating func receive(
        from port: inout RelayPort,
        at now: Instant,
        _ transports: inout Transports,
        _ receiver: inout Receiver,
        _ forwarder: inout Forwarder,
        _ allocator: inout LayerAllocator
    ) -> Bool {
        guard port.workers > 1 else { return false }
        let first = port.takeTurn()
        for step in 0..<port.workers - 1 {
            let offset = 1 + (first - 1 + step) % (port.workers - 1)
            let other = (port.worker + offset) % port.workers
            drain(
                &port[reader: other],
                from: other,
                at: now,
                &transports,
                &receiver,
                &forwarder,
                &allocator
            )
            port[reader: other].release()
            if receiver.arrivalCount >= Receiver.batchCapacity { return true }
        }
        return false
    }

    private mutating func drain(
        _ reader: inout RelayReader,
        from other: Int,
        at now: Instant,
        _ transports: inout Transports,
        _ receiver: inout Receiver,
        _ forwarder: inout Forwarder,
        _ allocator: inout LayerAllocator
    ) {
        // Requests add no arrival, so they have a bound of their own.
        for _ in 0..<RelayRing.capacity where receiver.arrivalCount < Receiver.batchCapacity {
            guard !reader.isEmpty() else { return }
            let message = reader.message
            switch message.kind {
            case .packet:
                admit(
                    message,
                    of: reader,
                    from: other,
                    at: now,
                    &transports,
                    &receiver,
                    &forwarder,
                    &allocator
                )
            case .keyframeRequested: noteKeyframeRequest(message, at: now, &transports, &receiver)
            case .heldAudioRequest: notePrerollRequest(message, from: other, &receiver)
            case .pictureRequest: notePictureRequest(message, from: other, &receiver)
            case .withheld:
                noteWithholding(
                    message,
                    from: other,
                    at: now,
                    &transports,
                    &receiver,
                    &forwarder,
                    &allocator
                )
            case .picture:
                takePicture(
                    message,
                    of: reader,
                    from: other,
                    at: now,
                    &transports,
                    &receiver,
                    &forwarder,
                    &allocator
                )
            }
            reader.advance()
        }
    }

    /// Handles a keyframe request from a mirror like one of the subscribers here.
    private mutating func noteKeyframeRequest(
        _ message: RelayMessage,
        at now: Instant,
        _ transports: inout Transports,
        _ receiver: inout Receiver
    ) {
        guard receiver.publications.contains(message.target) else { return }
        let publication = message.target.place
        let position = Int(message.position)
        guard receiver.publications[publication].home == nil,
            receiver.publications[publication].isOpen,
            position < receiver.publications[publication].encodings.count
        else { return }
        let encoding = receiver.publications[publication].encodings[position]
        guard receiver.encodings[encoding].kind == .video else { return }
        receiver.requestKeyframe(of: encoding, at: now, &transports)
    }

    /// Sets the mirrors that a home's packets are relayed to from the next batch on.
    mutating func relay(_ id: PublicationID, to targets: [RelayTarget], _ receiver: inout Receiver)
    {
        guard receiver.publications.contains(id), receiver.publications[id.place].home == nil
        else { return }
        setMirrors(of: id.place, to: targets, &receiver)
    }

    mutating func setMirrors(
        of publication: PublicationIndex,
        to targets: [RelayTarget],
        _ receiver: inout Receiver
    ) {
        if !receiver.publications[publication].mirrors.isEmpty { relayedCount -= 1 }
        // Targets that stay listed keep their state.
        for mirror in (0..<receiver.publications[publication].mirrors.count).reversed()
        where !targets.contains(receiver.publications[publication].mirrors[mirror].target) {
            receiver.publications[publication].mirrors.remove(swappingAt: mirror)
        }
        for target in targets where !hasMirror(publication, target, receiver) {
            receiver.publications[publication].mirrors.append(
                Publication.RelayDestination(target: target)
            )
        }
        if !receiver.publications[publication].mirrors.isEmpty { relayedCount += 1 }
    }

    private func hasMirror(
        _ publication: PublicationIndex,
        _ target: RelayTarget,
        _ receiver: borrowing Receiver
    ) -> Bool {
        for mirror in 0..<receiver.publications[publication].mirrors.count
        where receiver.publications[publication].mirrors[mirror].target == target { return true }
        return false
    }
}
