import WorkerInterface

// Reconciliation of the workers' state with the verdicts of `mayPublish` and `mayForward`. The
// desired state is compared with what the workers were last told, and the difference is sent.

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
        talkers.isStale = true
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
        talkers.isStale = true
        transaction.announce(.streamChanged(stream), to: .everyone)
        for number in stream.subscribers.sorted() {
            takeFreeSlots(for: number)
            reconcile(subscription: number, &transaction)
        }
    }

    /// Sends the workers the gates of a participant's publications.
    mutating func reconcileGates(
        of id: String,
        _ transaction: inout RoomTransaction
    ) {
        guard var publisher = participants[id] else { return }
        var touched: Set<String> = []
        for index in publisher.transports.indices {
            let transport = publisher.transports[index]
            for (number, track) in transport.tracks.enumerated() {
                let stream = stream(
                    of: id,
                    transport.name,
                    isScreen: track.source == .screen
                )
                let verdict = mayPublish(publisher, track.kind, from: track.source)
                let open = verdict == .open && !track.withdrawn && stream?.isOn(track.kind) == true
                guard track.gate != open else { continue }
                transaction.tell(transport.place.worker, .gate(track.publication, open: open))
                transaction.touch(transport.home(of: track))
                publisher.transports[index].tracks[number].gate = open
                if !open { publisher.transports[index].tracks[number].speaking = nil }
                if let stream { touched.insert(stream.id) }
            }
        }
        participants[id] = publisher
        rank(id)
        for stream in touched.sorted() {
            for number in (streams[stream]?.subscribers ?? []).sorted() {
                reconcile(subscription: number, &transaction)
            }
        }
    }

    /// Sends the workers the role's layer cap for a participant's videos.
    private mutating func reconcileCaps(of id: String, _ transaction: inout RoomTransaction) {
        guard var publisher = participants[id] else { return }
        let cap = role(of: publisher).publish.cap
        for index in publisher.transports.indices {
            let transport = publisher.transports[index]
            for (number, track) in transport.tracks.enumerated()
            where track.kind == .video && track.configuration.cap != cap {
                publisher.transports[index].tracks[number].configuration.cap = cap
                transaction.tell(transport.place.worker, .limit(track.publication, cap))
                transaction.touch(transport.home(of: track))
            }
        }
        participants[id] = publisher
    }

    /// Opens the gates of hosts that have come within `maxHosts`.
    mutating func reconcileHosts(_ transaction: inout RoomTransaction) {
        guard settings.kind.isLiveEvent else { return }
        for host in moderation.hosts.ids.prefix(settings.maxHosts) {
            reconcileGates(of: host, &transaction)
        }
    }

    /// Binds a subscription's slots in the worker and announces when its video is disabled or
    /// enabled.
    mutating func reconcile(
        subscription number: UInt64,
        _ transaction: inout RoomTransaction
    ) {
        guard var subscription = subscriptions[number], let stream = streams[subscription.stream],
            let publisher = participants[stream.participant],
            let subscriber = participants[subscription.participant]
        else { return }
        let verdict = mayReceive(from: publisher, subscriber)
        for kind in MediaKind.allCases {
            guard let slot = subscription.slot(kind) else { continue }
            var feed = stream.home(kind).map {
                Feed(
                    home: $0,
                    subscription: number,
                    open: verdict == .open && subscription.isOn(kind)
                )
            }
            if kind == .video {
                feed?.preference = subscription.preferences.cap
                feed?.roleCap = role(of: subscriber).subscribeCap
                feed?.priority = subscription.preferences.priority ?? 0
                feed?.mayFallBack =
                    stream.audioFallback && subscription.preferences.audioFallback != false
            }
            let start = kind == .audio ? subscription.preroll : nil
            bind(slot, of: subscriber.id, to: feed, from: start, &transaction)
        }
        if subscription.preroll != nil {
            subscription.preroll = nil
            subscriptions[number] = subscription
        }
        // A subscription that the roles forbid ends with this call; only its end is announced.
        guard verdict != .closed(.role) else { return }
        let reason = whyNoVideo(subscription, stream, publisher, subscriber)
        guard reason != subscription.videoDisabled else { return }
        let audience = Audience.only([subscriber.id])
        if let reason {
            transaction.announce(.videoDisabled(subscription, reason), to: audience)
        } else if let reason = subscription.videoDisabled {
            transaction.announce(.videoEnabled(subscription, reason), to: audience)
        }
        subscription.videoDisabled = reason
        subscriptions[number] = subscription
    }

    private func whyNoVideo(
        _ subscription: Subscription,
        _ stream: Stream,
        _ publisher: Participant,
        _ subscriber: Participant
    ) -> DisableReason? {
        guard stream.video != nil, let name = subscription.videoSlot,
            let slot = slot(name, of: subscriber)
        else { return nil }
        let source: MediaSource = stream.isScreen ? .screen : .camera
        if case .closed(let reason?) = mayForward(
            .video,
            of: source,
            from: publisher,
            to: subscriber
        ) {
            return reason
        }
        if !stream.videoOn { return .publisher }
        if stream.hasVideoCome, let codec = stream.videoCodec, !slot.codecs.contains(codec) {
            return .codec
        }
        guard subscription.videoOn else { return .subscriber }
        return switch subscription.held {
        case .quality: .quality
        case .interrupted: .interrupted
        case .role: .role
        case nil: nil
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
