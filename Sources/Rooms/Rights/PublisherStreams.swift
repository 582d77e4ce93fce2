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
        let before = moderation.hosts
        // Ended streams free their slots for new ones.
        for id in ids { endStreams(of: id, reason, &transaction) }
        for id in ids { carryStreams(of: id, &transaction) }
        // A host that moves from one stream to another keeps its position.
        moderation.hosts.keepOrder(of: before)
        for id in ids {
            reconcileCaps(of: id, &transaction)
            reconcileGates(of: id, &transaction)
        }
        reconcileHosts(&transaction)
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
                if let stream { end(stream: stream.id, reason, &transaction) }
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
                    carry(tracks, in: stream.id, &transaction)
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
            created: transaction.shared.unixTime,
            audioFallback: transport.audioFallback
        )
        stream.carry(tracks)
        stream.hardMuted = publisher.hardMuted
        streams[stream.id] = stream
        speakers.isStale = true
        participants[publisher.id]?.streams.append(stream.id)
        if settings.kind.isLiveEvent { moderation.hosts.add(publisher.id) }
        transaction.announce(.streamCreated(stream), to: .everyone)
    }

    /// Moves a stream to other, more or fewer m-lines.
    private mutating func carry(
        _ tracks: [Track],
        in id: String,
        _ transaction: inout RoomTransaction
    ) {
        guard var stream = streams[id] else { return }
        guard stream.carry(tracks) else { return }
        streams[id] = stream
        speakers.isStale = true
        transaction.announce(.streamChanged(stream), to: .everyone)
        for number in stream.subscribers.sorted() {
            takeFreeSlots(for: number)
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
        transport.tracks.filter { track in
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
