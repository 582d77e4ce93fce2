import RTP
import WorkerInterface

/// Mirrors: publications whose home is another worker.
///
/// Their packets come out of a ring and are forwarded as if they had been received here.
extension Relays {
    /// Interval at which a mirror without other work is reviewed.
    private static let mirrorsMilliseconds: Int64 = 1_000

    /// Creates a mirror, which asks for held audio if a listener is to hear it from the start.
    mutating func addMirror(
        _ mirror: Mirror,
        at now: Instant,
        _ transports: inout Transports,
        _ receiver: inout Receiver
    ) {
        let id = mirror.configuration.id
        let publication = id.place
        let made = Publication(mirror.configuration, origin: .mirror(of: mirror.home))
        receiver.publications.insert(made, at: id)
        receiver.publications[publication].isOpen = mirror.open
        receiver.mirrors.append(publication)
        receiver.addEncodings(to: publication, &transports)
        if let start = mirror.from {
            receiver.publications[publication].heldAudioSince = start
            receiver.publications[publication].asks = Self.asks
            return receiver.scheduleMirrors(by: now)
        }
        if receiver.publications[publication].kind == .video {
            receiver.publications[publication].wantsPicture = true
            receiver.publications[publication].asks = Self.asks
            return receiver.scheduleMirrors(by: now)
        }
        receiver.scheduleMirrors(by: now.advanced(milliseconds: Self.mirrorsMilliseconds))
    }

    /// Follows the publication to another home, whose numbering is another one.
    mutating func moveHome(
        of publication: PublicationIndex,
        to home: RelayTarget,
        _ receiver: inout Receiver
    ) {
        receiver.publications[publication].origin = .mirror(of: home)
        receiver.publications[publication].withheld = 0
        for position in 0..<receiver.publications[publication].encodings.count {
            let encoding = receiver.publications[publication].encodings[position]
            receiver.encodings[encoding].homeEpoch = nil
        }
    }

    /// Ends the relay of a publication that is removed, at its home or in a mirror.
    mutating func removeRelays(of publication: PublicationIndex, _ receiver: inout Receiver) {
        setMirrors(of: publication, to: [], &receiver)
        guard receiver.publications[publication].transport == nil else { return }
        receiver.mirrors.remove(publication)
        if receiver.mirrors.isEmpty { receiver.mirrorsDue = nil }
    }

    /// Admits a relayed packet: the steps of ingress that remain for this worker.
    mutating func admit(
        _ message: RelayMessage,
        of reader: borrowing RelayReader,
        from other: Int,
        at now: Instant,
        _ transports: inout Transports,
        _ receiver: inout Receiver,
        _ forwarder: inout Forwarder,
        _ allocator: inout LayerAllocator
    ) {
        counters.relayedIn &+= 1
        guard let place = receiver.pool.allocate() else {
            return receiver.relayDrops.count(.bufferFull)
        }
        if let drop = enter(
            message,
            of: reader,
            from: other,
            place: place,
            at: now,
            &transports,
            &receiver,
            &forwarder,
            &allocator
        ) {
            receiver.relayDrops.count(drop)
            receiver.pool.release(place)
        }
    }

    /// Stores a relayed packet; returns the drop reason, or `nil` if it was kept.
    private mutating func enter(
        _ message: RelayMessage,
        of reader: borrowing RelayReader,
        from other: Int,
        place: PacketPlace,
        at now: Instant,
        _ transports: inout Transports,
        _ receiver: inout Receiver,
        _ forwarder: inout Forwarder,
        _ allocator: inout LayerAllocator
    ) -> DropReason? {
        guard receiver.publications.contains(message.target) else { return .unknownStream }
        let publication = message.target.place
        let position = Int(message.position)
        guard let home = receiver.publications[publication].home, home.worker == other,
            home.publication == message.source,
            position < receiver.publications[publication].encodings.count
        else { return .unknownStream }
        // The ring may hold packets from before the gate was closed and opened again.
        guard receiver.publications[publication].isOpen,
            message.info.arrival > receiver.publications[publication].openedAt
        else { return .gated }

        var packets = receiver.pool.packets
        var bytes = packets.mutableBytes(at: place)
        reader.copyPacket(length: Int(message.length), into: &bytes)
        let encoding = receiver.publications[publication].encodings[position]
        let hasLeft = follow(message, encoding: encoding, &receiver)
        var info = message.info
        info.encoding = encoding
        info.epoch = receiver.encodings[encoding].epoch
        // Padding is not relayed: GSO padding is decided again for the subscribers here.
        info.padding = 0
        info.drop = info.flags.contains(.skipped) ? .padding : .noSubscriber
        if receiver.encodings[encoding].kind == .audio {
            receiver.publications[publication].heldAudioSince = nil
            // Relayed audio is being listened to, and the next listener may join in the middle of a
            // word, so keep the preroll.
            receiver.encodings[encoding].history.retentionMilliseconds = History.prerollMilliseconds
        } else if !info.flags.contains(.skipped) {
            let isNews = noteSizes(message, encoding: encoding, &receiver)
            let layers = receiver.noteVideo(info, place, isNews: isNews, encoding: encoding)
            if layers.mayChangeOffers {
                allocator.noteNews(
                    of: publication,
                    at: info.arrival,
                    &transports,
                    &receiver,
                    &forwarder
                )
            }
            receiver.answerKeyframeRequests(
                with: info,
                layers,
                encoding: encoding,
                at: now,
                &transports
            )
        }
        if receiver.encodings[encoding].kind == .video, message.followsGap || hasLeft,
            !info.flags.contains(.keyframeStart)
        {
            requestKeyframesAfterGap(
                publication,
                at: info.arrival,
                &transports,
                &receiver,
                forwarder
            )
        }
        receiver.keep(info, place: place, encoding: encoding, publication: publication)
        return nil
    }

    /// Adopts the home's epoch, capture time and rate of the encoding; returns whether that ends
    /// an epoch, whose pictures those of the next one do not continue.
    private mutating func follow(
        _ message: RelayMessage,
        encoding: EncodingIndex,
        _ receiver: inout Receiver
    ) -> Bool {
        let hasLeft = followNumbering(message, encoding: encoding, &receiver)
        receiver.encodings[encoding].watch
            .receive(
                number: message.info.number,
                timestamp: message.info.timestamp,
                clockRate: receiver.encodings[encoding].clockRate,
                at: message.info.arrival
            )
        receiver.encodings[encoding].captured = message.captured
        receiver.encodings[encoding].rate.receive(
            bytes: Int(message.length),
            endsFrame: message.info.flags.contains(.marker),
            isMedia: !message.info.flags.contains(.skipped),
            at: message.info.arrival
        )
        return hasLeft
    }

    /// Adopts the home's epoch; returns whether that ends one.
    func followNumbering(
        _ message: RelayMessage,
        encoding: EncodingIndex,
        _ receiver: inout Receiver
    ) -> Bool {
        let before = receiver.encodings[encoding].homeEpoch
        guard before != message.info.epoch else { return false }
        // The home's numbering is another one. Without a new epoch here, two packets could get one
        // index.
        receiver.encodings[encoding].homeEpoch = message.info.epoch
        receiver.encodings[encoding].epoch = receiver.takeEpoch()
        receiver.encodings[encoding].history.removeAll(from: &receiver.pool)
        receiver.encodings[encoding].watch.restart()
        return before != nil
    }

    /// Adopts the picture sizes that the home knows; returns whether any changed.
    mutating func noteSizes(
        _ message: RelayMessage,
        encoding: EncodingIndex,
        _ receiver: inout Receiver
    ) -> Bool {
        var isNews =
            receiver.encodings[encoding].width != Int(message.width)
            || receiver.encodings[encoding].height != Int(message.height)
        receiver.encodings[encoding].width = Int(message.width)
        receiver.encodings[encoding].height = Int(message.height)
        let layer = LayerPoint(index: Int(message.info.layer))
        if receiver.encodings[encoding].layers.set(message.layerSize, of: layer.spatial) {
            isNews = true
        }
        return isNews
    }

    /// Asks for keyframes after a ring overflow, as the lost packets are in no history, or after
    /// another numbering of the home, whose pictures do not continue those that viewers have.
    mutating func requestKeyframesAfterGap(
        _ publication: PublicationIndex,
        at now: Instant,
        _ transports: inout Transports,
        _ receiver: inout Receiver,
        _ forwarder: borrowing Forwarder
    ) {
        for position in 0..<receiver.publications[publication].encodings.count {
            let encoding = receiver.publications[publication].encodings[position]
            if isFollowed(encoding, of: publication, receiver, forwarder) {
                receiver.requestKeyframeAfterLoss(of: encoding, now, &transports)
            }
        }
    }

    private func isFollowed(
        _ encoding: EncodingIndex,
        of publication: PublicationIndex,
        _ receiver: borrowing Receiver,
        _ forwarder: borrowing Forwarder
    ) -> Bool {
        for index in 0..<receiver.publications[publication].subscribers.count {
            let slot = receiver.publications[publication].subscribers[index]
            // One that goes on after a restart has no target before the layers are known.
            if forwarder.slotRecords[slot].target?.encoding == encoding
                || forwarder.slots[slot].sends(encoding)
            {
                return true
            }
        }
        return false
    }

    /// Sends the keyframe requests that are due to the homes, and does periodic maintenance.
    mutating func expireMirrors(
        into port: inout RelayPort,
        at now: Instant,
        _ transports: inout Transports,
        _ receiver: inout Receiver,
        _ forwarder: inout Forwarder,
        _ allocator: inout LayerAllocator
    ) {
        var next = now.advanced(milliseconds: Self.mirrorsMilliseconds)
        for index in 0..<receiver.mirrors.count {
            let publication = receiver.mirrors[index]
            if receiver.publications[publication].home == nil,
                receiver.publications[publication].withheld != 0
            {
                // A mirror may have been made after it was told.
                tellWithholding(of: publication)
            }
            if let again = requestPreroll(of: publication, through: &port, at: now, &receiver) {
                next = min(next, again)
            }
            if let again = requestPicture(of: publication, through: &port, at: now, &receiver) {
                next = min(next, again)
            }
            if receiver.publications[publication].kind == .video {
                receiver.publications[publication].isBusy = allocator.review(
                    publication,
                    at: now,
                    &transports,
                    &receiver,
                    &forwarder
                )
            }
            if receiver.publications[publication].isBusy {
                next = min(next, now.advanced(milliseconds: Receiver.layersMilliseconds))
            }
            for position in 0..<receiver.publications[publication].encodings.count {
                let encoding = receiver.publications[publication].encodings[position]
                receiver.encodings[encoding].history.trim(at: now, pool: &receiver.pool)
                if receiver.encodings[encoding].kind == .audio {
                    receiver.encodings[encoding].rate.measure(at: now)
                }
                if !receiver.publications[publication].hasViewers
                    || !receiver.publications[publication].isOpen
                {
                    receiver.encodings[encoding].keyframes.satisfy()
                }
                if receiver.encodings[encoding].keyframes.isDue(at: now) {
                    askHome(of: publication, for: position, through: &port, receiver)
                }
                next = min(next, receiver.encodings[encoding].keyframes.deadline ?? next)
            }
        }
        receiver.mirrorsDue = next
    }

    /// Asks the home for a keyframe.
    ///
    /// A request that finds the ring full is lost and repeated later, like an unanswered one.
    private mutating func askHome(
        of publication: PublicationIndex,
        for position: Int,
        through port: inout RelayPort,
        _ receiver: borrowing Receiver
    ) {
        guard let home = receiver.publications[publication].home else {
            // Its home is another node.
            if !linkRequests.contains(where: { $0.0 == publication && $0.1 == position }) {
                linkRequests.append((publication, position))
            }
            return
        }
        guard port.reaches(home.worker) else { return }
        let request = RelayMessage(
            .keyframeRequested,
            to: home.publication,
            from: receiver.publications.handle(at: publication),
            position: position
        )
        _ = port.write(request, Span(), to: home.worker)
    }
}
