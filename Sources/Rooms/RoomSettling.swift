import WorkerInterface

// Carries the answers of `mayPublish` and `mayForward` to the workers: what should be is held
// against what was told last, and the difference is told.

extension Room {
    /// Brings a participant's streams and gates to what its rights now say.
    mutating func settle(
        publisher id: String,
        ending reason: String,
        _ shared: inout Shared,
        _ change: inout Change
    ) {
        settle(publishers: [id], ending: reason, &shared, &change)
    }

    /// The same for several whose rights change at once: first the streams of all, so that nobody
    /// is told anything of one that goes anyway.
    mutating func settle(
        publishers ids: [String],
        ending reason: String,
        _ shared: inout Shared,
        _ change: inout Change
    ) {
        let line = hosts
        // Those that end first: the slots that carried them are free for what comes.
        for id in ids { endStreams(of: id, reason, &change) }
        for id in ids { carryStreams(of: id, &shared, &change) }
        // Who goes from one stream to another has not stopped sending.
        hosts = line.filter { hosts.contains($0) } + hosts.filter { !line.contains($0) }
        for id in ids {
            settleCaps(of: id, &change)
            settleGates(of: id, &shared, &change)
        }
        settleHosts(&shared, &change)
    }

    /// Ends the streams that have nothing left to carry.
    private mutating func endStreams(
        of id: String,
        _ reason: String,
        _ change: inout Change
    ) {
        guard let publisher = participants[id] else { return }
        for transport in publisher.transports {
            for isScreen in [false, true]
            where tracksOnStage(of: publisher, transport, isScreen: isScreen).isEmpty {
                let stream = stream(of: id, transport.name, isScreen: isScreen)
                if let stream { end(stream: stream.id, reason, &change) }
            }
        }
    }

    /// Makes streams of what a participant sends, or brings those that are there up to date.
    private mutating func carryStreams(
        of id: String,
        _ shared: inout Shared,
        _ change: inout Change
    ) {
        guard let publisher = participants[id] else { return }
        for transport in publisher.transports {
            for isScreen in [false, true] {
                let tracks = tracksOnStage(of: publisher, transport, isScreen: isScreen)
                guard !tracks.isEmpty else { continue }
                if let stream = stream(of: id, transport.name, isScreen: isScreen) {
                    carry(tracks, in: stream.id, &shared, &change)
                } else {
                    create(of: publisher, transport, isScreen, tracks, &shared, &change)
                }
            }
        }
    }

    private mutating func create(
        of publisher: Participant,
        _ transport: Transport,
        _ isScreen: Bool,
        _ tracks: [Track],
        _ shared: inout Shared,
        _ change: inout Change
    ) {
        var stream = Stream(
            id: freshStreamID(&shared.random),
            birth: nextBirth(),
            participant: publisher.id,
            transport: transport.name,
            worker: transport.place.worker,
            isScreen: isScreen,
            created: shared.unixTime,
            audioFallback: transport.audioFallback
        )
        stream.carry(tracks)
        stream.hardMuted = publisher.hardMuted
        streams[stream.id] = stream
        talkers.isStale = true
        participants[publisher.id]?.streams.append(stream.id)
        if settings.kind.isLiveEvent, !hosts.contains(publisher.id) { hosts.append(publisher.id) }
        change.announce(.streamCreated(stream), to: .everyone)
    }

    /// The same stream on other m-lines, or on more or fewer of them.
    private mutating func carry(
        _ tracks: [Track],
        in id: String,
        _ shared: inout Shared,
        _ change: inout Change
    ) {
        guard var stream = streams[id] else { return }
        guard stream.carry(tracks) else { return }
        streams[id] = stream
        talkers.isStale = true
        change.announce(.streamChanged(stream), to: .everyone)
        for number in stream.subscribers.sorted() {
            takeFreeSlots(for: number)
            settle(subscription: number, &shared, &change)
        }
    }

    /// Tells the workers which of a participant's publications may pass.
    mutating func settleGates(
        of id: String,
        _ shared: inout Shared,
        _ change: inout Change
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
                change.tell(transport.place.worker, .gate(track.publication, open: open))
                change.touch(transport.home(of: track))
                publisher.transports[index].tracks[number].gate = open
                if !open { publisher.transports[index].tracks[number].speaking = nil }
                if let stream { touched.insert(stream.id) }
            }
        }
        participants[id] = publisher
        rank(id)
        for stream in touched.sorted() {
            for number in (streams[stream]?.subscribers ?? []).sorted() {
                settle(subscription: number, &shared, &change)
            }
        }
    }

    /// Tells the workers what a participant's role allows of its videos.
    private mutating func settleCaps(of id: String, _ change: inout Change) {
        guard var publisher = participants[id] else { return }
        let cap = role(of: publisher).publish.cap
        for index in publisher.transports.indices {
            let transport = publisher.transports[index]
            for (number, track) in transport.tracks.enumerated()
            where track.kind == .video && track.configuration.cap != cap {
                publisher.transports[index].tracks[number].configuration.cap = cap
                change.tell(transport.place.worker, .limit(track.publication, cap))
                change.touch(transport.home(of: track))
            }
        }
        participants[id] = publisher
    }

    /// Opens the gates of hosts who have come to a place.
    mutating func settleHosts(_ shared: inout Shared, _ change: inout Change) {
        guard settings.kind.isLiveEvent else { return }
        for host in hosts.prefix(settings.maxHosts) {
            settleGates(of: host, &shared, &change)
        }
    }

    /// Tells the worker what a subscription's slots carry, and the subscriber if video stands.
    mutating func settle(
        subscription number: UInt64,
        _ shared: inout Shared,
        _ change: inout Change
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
                feed?.preference = subscription.wishes.cap
                feed?.roleCap = role(of: subscriber).subscribeCap
                feed?.priority = subscription.wishes.priority ?? 0
                feed?.mayFallBack =
                    stream.audioFallback && subscription.wishes.audioFallback != false
            }
            let start = kind == .audio ? subscription.preroll : nil
            bind(slot, of: subscriber.id, to: feed, from: start, &shared, &change)
        }
        if subscription.preroll != nil {
            subscription.preroll = nil
            subscriptions[number] = subscription
        }
        // What the roles allow no longer ends with this call, which is all that is told of it.
        guard verdict != .closed(.role) else { return }
        let reason = whyNoVideo(subscription, stream, publisher, subscriber)
        guard reason != subscription.videoDisabled else { return }
        let audience = Audience.only([subscriber.id])
        if let reason {
            change.announce(.videoDisabled(subscription, reason), to: audience)
        } else if let reason = subscription.videoDisabled {
            change.announce(.videoEnabled(subscription, reason), to: audience)
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

    /// What a participant sends on a transport that belongs to a camera, or to a screen, and that
    /// its rights let others see.
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
    /// Takes up the first m-line of each kind.
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
            wanted = [:]
            wantedTold = .max
        }
        self.audio = audio?.publication
        self.video = video?.publication
        return true
    }
}
