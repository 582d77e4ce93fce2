import SFUClient

// The one formula (A0-1), for every pair and at every step from scratch.
extension ReferenceRoom {
    /// Why an offer is refused here: what is in the way until there is another offer.
    func refusal(_ person: Person, _ line: Line) -> String? {
        guard person.mode == "SEND_AND_RECV" else { return "mode" }
        let publish = role(person.role)?["publish"]
        let right = line.isScreen ? publish?["screen"] : publish?[line.kind]
        guard right == true else { return "role" }
        guard mode != "single_host_audio_only" || line.kind == "audio" else {
            return "event-type"
        }
        return nil
    }

    /// Whether the participant may be seen and heard with this at all: mutes are another thing.
    func mayPublish(_ person: Person, _ line: Line) -> Bool {
        wantsToPublish(person, line)
            && (!isLiveEvent || hosts.prefix(number("maxHosts") ?? 0).contains(person.id))
    }

    /// The same but for the host's place.
    private func wantsToPublish(_ person: Person, _ line: Line) -> Bool {
        line.sends && line.refused == nil && !line.isWithdrawn
            && !person.isAwaited && refusal(person, line) == nil && state != "ended"
            && (mode == "group" || person.role == "moderator" || holder == person.id)
    }

    func stream(_ person: Person, _ transport: Transport, isScreen: Bool) -> Stream? {
        streams.first {
            $0.owner == person.id && $0.transport == transport.name && $0.isScreen == isScreen
        }
    }

    /// Whether the publisher's gate is open.
    func isOpen(_ person: Person, _ transport: Transport, _ line: Line) -> Bool {
        let isRoomMuted = isHardMuted && line.kind == "audio" && person.role != "moderator"
        let stream = stream(person, transport, isScreen: line.isScreen)
        return mayPublish(person, line) && !isRoomMuted && !person.hardMuted.contains(line.kind)
            && stream?.off.contains(line.kind) == false
    }

    func watches(_ viewer: Person, _ publisher: Person) -> Bool {
        guard let roles = role(viewer.role)?["subscribe"]?["roles"] else { return true }
        return roles.list.contains(.string(publisher.role))
    }

    /// Whether a subscription's slot is open, the publisher's own gate apart.
    func isOpen(_ subscription: Subscription, _ kind: String) -> Bool {
        guard let viewer = person(subscription.participant),
            let stream = streams.first(where: { $0.id == subscription.stream }),
            let publisher = person(stream.owner)
        else { return false }
        return !viewer.isAwaited && viewer.mode != "SIGNALLING_ONLY" && watches(viewer, publisher)
            && (state == "ongoing" || (state != "ended" && viewer.role == "moderator"))
            && !subscription.off.contains(kind)
    }

    /// Why a subscription has no video.
    private func videoDisabled(_ subscription: Subscription, _ stream: Stream) -> String? {
        guard subscription.mids["video"] != nil, stream.kinds.contains("video") else { return nil }
        if stream.off.contains("video") { return "publisher" }
        if person(stream.owner)?.hardMuted.contains("video") == true { return "muted" }
        if subscription.off.contains("video") { return "subscriber" }
        return nil
    }

    /// Brings streams and subscriptions to what the formula says now, and tells what came of it.
    ///
    /// Call it within a call before anything else that follows from the call is told.
    mutating func settle(from before: ReferenceRoom, because reason: String) {
        seatHosts()
        settleStreams(from: before, because: reason)
        settleSubscriptions()
    }

    /// Who begins to send takes the last place, who stops leaves the line.
    private mutating func seatHosts() {
        guard isLiveEvent else { return }
        let wanting = people.filter { person in
            person.transports.contains { $0.lines.contains { wantsToPublish(person, $0) } }
        }.map(\.id)
        hosts.removeAll { !wanting.contains($0) }
        hosts += wanting.filter { !hosts.contains($0) }
    }

    private mutating func settleStreams(from before: ReferenceRoom, because reason: String) {
        var settled: [Stream] = []
        for var stream in streams {
            stream.kinds = kinds(of: stream)
            if stream.kinds.isEmpty {
                alsoTell(
                    "stream.destroyed",
                    [
                        "stream": .string(stream.id), "participant": .string(stream.owner),
                        "reason": .string(reason),
                    ]
                )
            } else {
                settled.append(stream)
            }
        }
        streams = settled
        for stream in streams {
            let former = before.streams.first { $0.id == stream.id }
            if let former, before.shown(former) != shown(stream) {
                alsoTell("stream.changed", ["stream": shown(stream)])
            }
        }
        for person in people {
            for transport in person.transports {
                for isScreen in [false, true]
                where stream(person, transport, isScreen: isScreen) == nil {
                    create(person, transport, isScreen: isScreen)
                }
            }
        }
    }

    private func kinds(of stream: Stream) -> Set<String> {
        let owner = person(stream.owner)
        let transport = owner?.transports.first { $0.name == stream.transport }
        guard let owner, let transport else { return [] }
        let lines = transport.lines.filter {
            $0.isScreen == stream.isScreen && mayPublish(owner, $0)
        }
        return Set(lines.map(\.kind))
    }

    private mutating func create(_ person: Person, _ transport: Transport, isScreen: Bool) {
        var stream = Stream(
            id: "",
            owner: person.id,
            transport: transport.name,
            isScreen: isScreen
        )
        stream.kinds = kinds(of: stream)
        guard !stream.kinds.isEmpty else { return }
        stream.id = names.next("stream")
        streams.append(stream)
        alsoTell("stream.created", ["stream": shown(stream)])
    }

    private mutating func settleSubscriptions() {
        var settled: [Subscription] = []
        for var subscription in subscriptions {
            let data: [String: JSON?] = [
                "subscription": .string(subscription.id),
                "participant": .string(subscription.participant),
                "stream": .string(subscription.stream),
            ]
            guard let stream = streams.first(where: { $0.id == subscription.stream }),
                let publisher = person(stream.owner),
                let viewer = person(subscription.participant)
            else { continue }
            let slots = viewer.transports.flatMap(\.lines).filter(\.receives).map(\.mid)
            subscription.mids = subscription.mids.filter { slots.contains($0.value) }
            guard !subscription.mids.isEmpty else { continue }
            guard watches(viewer, publisher) else {
                alsoTell("subscription.disconnected", to: [viewer.id], data)
                continue
            }
            let disabled = videoDisabled(subscription, stream)
            if disabled != subscription.disabled {
                let isOver = disabled == nil
                alsoTell(
                    isOver ? "subscription.videoEnabled" : "subscription.videoDisabled",
                    to: [viewer.id],
                    data.merging(["reason": (disabled ?? subscription.disabled).json]) { $1 }
                )
                subscription.disabled = disabled
            }
            settled.append(subscription)
        }
        subscriptions = settled
    }
}
