import WorkerInterface

// Streams of publishers, from the verdicts of `mayPublish`. The desired state is compared with what
// the workers were last told, and the difference is sent.

extension Room {
    /// Applies a participant's rights to its streams and gates.
    mutating func reconcile(
        publisher id: String,
        ending reason: String,
        _ transaction: inout RoomTransaction
    ) {
        reconcile(publishers: [id], ending: reason, &transaction)
    }

    /// Applies the rights of several participants that change at once.
    ///
    /// Ending streams come first for all of them, so that nobody is told of changes to a stream
    /// that ends anyway.
    mutating func reconcile(
        publishers ids: [String],
        ending reason: String,
        _ transaction: inout RoomTransaction
    ) {
        for id in ids { queue(host: id) }
        // Ended streams free their slots for new ones.
        for id in ids { endStreams(of: id, reason, &transaction) }
        for id in ids { carryStreams(of: id, &transaction) }
        for id in ids {
            reconcileCaps(of: id, &transaction)
            reconcileGates(of: id, &transaction)
        }
        reconcileHosts(&transaction)
    }

    /// Gives streams to hosts for whom a place has become free.
    ///
    /// That is the moment at which the place is announced: a waiting host has no stream.
    mutating func reconcileHosts(_ transaction: inout RoomTransaction) {
        guard settings.kind.isLiveEvent else { return }
        for host in moderation.hosts.ids.prefix(settings.maxHosts) {
            carryStreams(of: host, &transaction)
            reconcileGates(of: host, &transaction)
        }
    }

    /// Adds a participant to the queue for host places, or removes it.
    ///
    /// It stays there, and keeps its position, as long as it offers media that needs a place, or
    /// has lost its connection and may offer such media when it comes back.
    private mutating func queue(host id: String) {
        guard settings.kind.isLiveEvent else { return }
        guard let host = participants[id] else { return moderation.hosts.remove(id) }
        let claims = host.transports.contains { transport in
            !transport.isSuccessor
                && transport.tracks.contains {
                    !$0.withdrawn && mayPublish(host, $0.kind, from: $0.source).claimsHostPlace
                }
        }
        if claims { return moderation.hosts.add(id) }
        guard moderation.hosts.isExpected(id), mayHost(host) else {
            return moderation.hosts.remove(id)
        }
    }

    /// Whether a participant may publish anything that needs a host's place.
    private func mayHost(_ host: Participant) -> Bool {
        MediaKind.allCases.contains { kind in
            [.defaultSource(for: kind), .screen].contains { source in
                mayPublish(host, kind, from: source).claimsHostPlace
            }
        }
    }

    /// Ends the streams that have no tracks left to carry.
    private mutating func endStreams(
        of id: String,
        _ reason: String,
        _ transaction: inout RoomTransaction
    ) {
        guard let publisher = participants[id] else { return }
        for transport in publisher.transports {
            for isScreen in [false, true]
            where tracksOnStage(of: publisher, transport, isScreen: isScreen).isEmpty {
                let stream = stream(of: id, transport.name, isScreen: isScreen)
                guard let stream else { continue }
                let hasLostPlace = transport.tracks.contains { track in
                    (track.source == .screen) == isScreen && !track.withdrawn
                        && mayPublish(publisher, track.kind, from: track.source)
                            == .gated(.hostPlace)
                }
                end(
                    stream: stream.id,
                    hasLostPlace ? EndReason.hostPlace : reason,
                    &transaction
                )
            }
        }
    }

    /// Creates streams for a participant's tracks, or updates the existing ones.
    private mutating func carryStreams(
        of id: String,
        _ transaction: inout RoomTransaction
    ) {
        guard let publisher = participants[id] else { return }
        for transport in publisher.transports {
            for isScreen in [false, true] {
                let tracks = tracksOnStage(of: publisher, transport, isScreen: isScreen)
                guard !tracks.isEmpty else { continue }
                if let stream = stream(of: id, transport.name, isScreen: isScreen) {
                    carry(tracks, in: stream.id, of: publisher, transport, &transaction)
                } else {
                    create(of: publisher, transport, isScreen, tracks, &transaction)
                }
            }
        }
    }

    private mutating func create(
        of publisher: Participant,
        _ transport: Transport,
        _ isScreen: Bool,
        _ tracks: [Track],
        _ transaction: inout RoomTransaction
    ) {
        var stream = Stream(
            id: freshStreamID(&transaction.shared.random),
            birth: lifecycle.nextBirth(),
            participant: publisher.id,
            transport: transport.name,
            worker: transport.place.worker,
            isScreen: isScreen,
            created: transaction.shared.unixTime
        )
        stream.carry(tracks)
        _ = stream.takeAttributes(of: transport)
        stream.hardMuted = mutedKinds(of: publisher)
        streams[stream.id] = stream
        speakers.isStale = true
        participants[publisher.id]?.streams.append(stream.id)
        countSent(nil, stream, at: transaction.shared.now)
        transaction.announce(.streamCreated(stream), to: .everyone)
    }

    /// Moves a stream to other, more or fewer m-lines, and updates what else is shown of it.
    private mutating func carry(
        _ tracks: [Track],
        in id: String,
        of publisher: Participant,
        _ transport: Transport,
        _ transaction: inout RoomTransaction
    ) {
        guard let before = streams[id] else { return }
        var stream = before
        let isMoved = stream.carry(tracks)
        let isDescribed = stream.takeAttributes(of: transport)
        let isMuted = stream.mute(mutedKinds(of: publisher))
        guard isMoved || isDescribed || stream.hardMuted != before.hardMuted else { return }
        streams[id] = stream
        countSent(before, stream, at: transaction.shared.now)
        guard isMoved || isDescribed || isMuted else { return }
        transaction.announce(.streamChanged(stream), to: .everyone)
        if isMoved {
            speakers.isStale = true
            for number in stream.subscribers.sorted() { takeFreeSlots(for: number) }
        }
        guard isMoved || stream.audioFallback != before.audioFallback else { return }
        for number in stream.subscribers.sorted() {
            reconcile(subscription: number, &transaction)
        }
    }

    /// Returns a participant's tracks on a transport that form its camera or screen stream.
    ///
    /// Tracks that its rights hide from others are left out.
    private func tracksOnStage(
        of publisher: Participant,
        _ transport: Transport,
        isScreen: Bool
    ) -> [Track] {
        guard !transport.isSuccessor else { return [] }
        return transport.tracks.filter { track in
            (track.source == .screen) == isScreen && !track.withdrawn
                && mayPublish(publisher, track.kind, from: track.source).isOnStage
        }
    }

    private func freshStreamID(_ random: inout RandomSource) -> String {
        let letters = Array("abcdefghijkmnpqrstuvwxyz23456789")
        while true {
            var id = "str-"
            for _ in 0..<12 { id.append(letters[Int.random(in: letters.indices, using: &random)]) }
            if streams[id] == nil { return id }
        }
    }
}

extension Room.Stream {
    /// Sets the stream's audio and video to the first track of each kind.
    ///
    /// - Returns: whether that was a change.
    @discardableResult
    fileprivate mutating func carry(_ tracks: [Room.Track]) -> Bool {
        let audio = tracks.first { $0.kind == .audio }
        let video = tracks.first { $0.kind == .video }
        guard self.audio != audio?.publication || self.video != video?.publication else {
            return false
        }
        if self.audio != audio?.publication { audioCodec = audio?.codec }
        if self.video != video?.publication {
            videoCodec = video?.codec
            hasVideoCome = false
            layers = []
            demand = [:]
            announcedDemand = .max
        }
        self.audio = audio?.publication
        self.video = video?.publication
        return true
    }
}
