import WorkerInterface

// Bindings of subscriptions' slots, from the verdicts of `mayForward`.

extension Room {
    /// Reapplies rights to all subscriptions from or to a participant.
    ///
    /// Subscriptions that the roles no longer allow end. Others that follow the speakers are not
    /// looked at, as only roles matter to them beside the lists: see `reconcile(rolesOf:)`.
    mutating func review(
        subscriptionsTouching id: String,
        _ transaction: inout RoomTransaction
    ) {
        guard let participant = participants[id] else { return }
        // Changed rights may also fill following slots that are empty now.
        speakers.followers.note(id)
        var numbers = Set(participant.subscriptions)
        for stream in participant.streams { numbers.formUnion(streams[stream]?.subscribers ?? []) }
        for number in numbers.sorted() {
            guard let subscription = subscriptions[number],
                let publisher = streams[subscription.stream]?.participant,
                let publisher = participants[publisher],
                let subscriber = participants[subscription.participant]
            else { continue }
            guard mayReceive(from: publisher, subscriber) == .closed(.role) else {
                reconcile(subscription: number, &transaction)
                continue
            }
            end(subscription: number, &transaction)
            // Nobody who awaits approval learns what others do, such as a change of their roles.
            transaction.announce(
                .subscriptionDisconnected(subscription, isFinal: true, .role),
                to: .only(subscriber.admitted ? [subscriber.id] : [])
            )
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
        var received: Set<SessionMedia> = []
        for kind in MediaKind.allCases {
            guard let slot = subscription.slot(kind) else { continue }
            var feed = stream.home(kind).map {
                Feed(
                    home: $0,
                    subscription: number,
                    open: verdict == .open && subscription.isOn(kind)
                )
            }
            if feed?.open == true {
                received.insert(SessionMedia(kind, isScreen: stream.isScreen))
            }
            if kind == .video {
                feed?.preference = subscription.preferences.cap
                feed?.roleCap = role(of: subscriber).subscribeCap
                feed?.priority =
                    subscription.preferences.priority ?? role(of: publisher).priority
                feed?.mayFallBack =
                    stream.audioFallback && subscription.preferences.audioFallback != false
            }
            let start = kind == .audio ? subscription.preroll : nil
            bind(slot, of: subscriber.id, to: feed, from: start, &transaction)
        }
        subscription.preroll = nil
        countReceived(received, by: &subscription, at: transaction.shared.now)
        subscriptions[number] = subscription
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
        // Nobody who awaits approval learns what others do.
        guard subscriber.admitted else { return nil }
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
}
