import RTP
import WorkerInterface

/// Mirrors: publications whose home is another worker.
///
/// Their packets come out of a ring and are forwarded as if they had been received here.
extension Core {
    /// Interval at which a mirror without other work is reviewed.
    private static let mirrorsMilliseconds: Int64 = 1_000

    /// Creates a mirror, or updates it after a new negotiation.
    mutating func mirror(_ mirror: Mirror, at now: Instant) {
        let id = mirror.configuration.id
        let publication = Int(id.index)
        guard publications.contains(id) else {
            let made = Publication(mirror.configuration, origin: .mirror(of: mirror.home))
            publications.insert(made, at: id)
            publications[publication].isOpen = mirror.open
            mirrors.append(Int32(publication))
            addEncodings(to: publication)
            if let start = mirror.from {
                publications[publication].heldAudioSince = start
                publications[publication].asks = Self.asks
                return scheduleMirrors(by: now)
            }
            return scheduleMirrors(by: now.advanced(milliseconds: Self.mirrorsMilliseconds))
        }
        guard let home = publications[publication].home else { return }
        if home != mirror.home {
            publications[publication].origin = .mirror(of: mirror.home)
            for position in 0..<publications[publication].encodings.count {
                let encoding = Int(publications[publication].encodings[position])
                encodings[encoding].homeEpoch = nil
            }
        }
        update(mirror.configuration, at: now)
        gate(id, open: mirror.open, at: now)
    }

    mutating func unmirror(_ id: PublicationID) {
        guard publications.contains(id), publications[Int(id.index)].home != nil else { return }
        let home = publications[Int(id.index)].home
        if publications[Int(id.index)].wanted != 0 { emit(.layersWanted(id, home: home, 0)) }
        remove(publication: Int(id.index))
        if mirrors.isEmpty { mirrorsDue = nil }
    }

    /// Admits a relayed packet: the steps of ingress that remain for this worker.
    mutating func admit(_ message: RelayMessage, of reader: borrowing RelayReader, from other: Int)
    {
        statistics.relayedIn &+= 1
        let place = pool.allocate()
        guard place >= 0 else { return relayDrops.count(.bufferFull) }
        if let drop = enter(message, of: reader, from: other, place: place) {
            relayDrops.count(drop)
            pool.release(place)
        }
    }

    /// Stores a relayed packet; returns the drop reason, or `nil` if it was kept.
    private mutating func enter(
        _ message: RelayMessage,
        of reader: borrowing RelayReader,
        from other: Int,
        place: Int32
    ) -> DropReason? {
        guard publications.contains(message.target) else { return .unknownStream }
        let publication = Int(message.target.index)
        let position = Int(message.position)
        guard let home = publications[publication].home, home.worker == other,
            home.publication == message.source,
            position < publications[publication].encodings.count
        else { return .unknownStream }
        // The ring may hold packets from before the gate was closed and opened again.
        guard publications[publication].isOpen,
            message.info.arrival > publications[publication].openedAt
        else { return .gated }

        var packets = pool.packets
        var bytes = packets.mutableBytes(at: place)
        reader.copyPacket(length: Int(message.length), into: &bytes)
        let encoding = Int(publications[publication].encodings[position])
        follow(message, encoding: encoding)
        var info = message.info
        info.encoding = UInt32(truncatingIfNeeded: encoding)
        info.epoch = encodings[encoding].epoch
        // Padding is not relayed: GSO padding is decided again for the subscribers here.
        info.padding = 0
        info.drop = info.flags.contains(.skipped) ? .padding : .noSubscriber
        if encodings[encoding].kind == .audio {
            publications[publication].heldAudioSince = nil
            // Relayed audio is being listened to, and the next listener may join in the middle of a
            // word, so keep the preroll.
            encodings[encoding].history.retentionMilliseconds = History.prerollMilliseconds
        } else if !info.flags.contains(.skipped) {
            let isNews = noteSizes(message, encoding: encoding)
            noteVideo(info, place: place, isNews: isNews, encoding: encoding)
        }
        if encodings[encoding].kind == .video, message.followsGap,
            !info.flags.contains(.keyframeStart)
        {
            requestKeyframesAfterGap(publication, at: info.arrival)
        }
        keep(info, place: place, encoding: encoding, publication: publication)
        return nil
    }

    /// Adopts the home's epoch, capture time and rate of the encoding.
    private mutating func follow(_ message: RelayMessage, encoding: Int) {
        if encodings[encoding].homeEpoch != message.info.epoch {
            // The home's numbering is another one. Without a new epoch here, two packets could get
            // one index.
            encodings[encoding].homeEpoch = message.info.epoch
            encodings[encoding].epoch = takeEpoch()
            encodings[encoding].history.removeAll(from: &pool)
        }
        encodings[encoding].captured = message.captured
        encodings[encoding].rate.receive(
            bytes: Int(message.length),
            endsFrame: message.info.flags.contains(.marker),
            isMedia: !message.info.flags.contains(.skipped),
            at: message.info.arrival
        )
    }

    /// Adopts the picture sizes that the home knows; returns whether any changed.
    private mutating func noteSizes(_ message: RelayMessage, encoding: Int) -> Bool {
        var isNews =
            encodings[encoding].width != Int(message.width)
            || encodings[encoding].height != Int(message.height)
        encodings[encoding].width = Int(message.width)
        encodings[encoding].height = Int(message.height)
        let layer = LayerPoint(index: Int(message.info.layer))
        if encodings[encoding].layers.set(message.layerSize, of: layer.spatial) { isNews = true }
        return isNews
    }

    /// Asks for keyframes after a ring overflow: the lost packets are in no history.
    private mutating func requestKeyframesAfterGap(_ publication: Int, at now: Instant) {
        for position in 0..<publications[publication].encodings.count {
            let encoding = publications[publication].encodings[position]
            if isFollowed(encoding, of: publication) {
                requestKeyframeAfterLoss(of: Int(encoding), now)
            }
        }
    }

    private func isFollowed(_ encoding: Int32, of publication: Int) -> Bool {
        for index in 0..<publications[publication].subscribers.count {
            let slot = Int(publications[publication].subscribers[index])
            if slotRecords[slot].target.encoding == encoding { return true }
        }
        return false
    }

    /// Sends the keyframe requests that are due to the homes, and does periodic maintenance.
    mutating func expireMirrors(into port: inout RelayPort, at now: Instant) {
        var next = now.advanced(milliseconds: Self.mirrorsMilliseconds)
        for index in 0..<mirrors.count {
            let publication = Int(mirrors[index])
            if let again = requestPreroll(of: publication, through: &port, at: now) {
                next = min(next, again)
            }
            if publications[publication].kind == .video {
                publications[publication].isBusy = review(publication, at: now)
            }
            if publications[publication].isBusy {
                next = min(next, now.advanced(milliseconds: Self.layersMilliseconds))
            }
            for position in 0..<publications[publication].encodings.count {
                let encoding = Int(publications[publication].encodings[position])
                encodings[encoding].history.trim(at: now, pool: &pool)
                if encodings[encoding].kind == .audio { encodings[encoding].rate.measure(at: now) }
                if !publications[publication].hasViewers || !publications[publication].isOpen {
                    encodings[encoding].keyframes.satisfy()
                }
                if encodings[encoding].keyframes.isDue(at: now) {
                    askHome(of: publication, for: position, through: &port)
                }
                next = min(next, encodings[encoding].keyframes.deadline ?? next)
            }
        }
        mirrorsDue = next
    }

    /// Asks the home for a keyframe.
    ///
    /// A request that finds the ring full is lost and repeated later, like an unanswered one.
    private mutating func askHome(
        of publication: Int,
        for position: Int,
        through port: inout RelayPort
    ) {
        guard let home = publications[publication].home, port.reaches(home.worker) else { return }
        let request = RelayMessage(
            .keyframeRequested,
            to: home.publication,
            from: publications.handle(at: publication),
            position: position
        )
        _ = port.write(request, Span(), to: home.worker)
    }

    mutating func scheduleMirrors(by due: Instant) {
        mirrorsDue = min(mirrorsDue ?? due, due)
    }
}
