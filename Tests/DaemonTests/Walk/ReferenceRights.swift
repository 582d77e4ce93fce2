import JSON
import SFU

// The one formula (A0-1), evaluated from scratch for every pair and at every step.
extension ReferenceRoom {
    /// Returns why an offer is refused; the obstacle persists until another offer.
    func refusal(_ person: Person, _ line: Line) -> String? {
        guard person.mode == "SEND_AND_RECV" else { return "mode" }
        guard mode != "single_host_audio_only" || line.kind == "audio" else {
            return "event-type"
        }
        return nil
    }

    /// Whether the role lets its holder send this.
    private func isGranted(_ person: Person, _ line: Line) -> Bool {
        let publish = role(person.role)?["publish"]
        let right = line.isScreen ? publish?["screen"] : publish?[line.kind]
        return right?.isGrant == true && (!isLiveEvent || person.role == "moderator")
    }

    /// Whether the role lets its holder send anything.
    func mayPublishSomething(_ person: Person) -> Bool {
        role(person.role)?["publish"]?.members.values.contains(where: \.isGrant) == true
    }

    /// Whether others would see a stream of it if no host were before this one.
    private func wantsStage(_ person: Person, _ line: Line) -> Bool {
        line.sends && line.refused == nil && !line.isWithdrawn
            && !person.isAwaited && refusal(person, line) == nil && isGranted(person, line)
            && state != "ended"
            && (mode == "group" || person.role == "moderator" || holder == person.id)
    }

    /// Whether a participant could send something that needs a host's place.
    private func mayHost(_ person: Person) -> Bool {
        ["audio", "video"].contains { kind in
            [true, false].contains { isScreen in
                let line = Line(mid: "", kind: kind, isScreen: isScreen, sends: true)
                return wantsStage(person, line)
            }
        }
    }

    /// Whether others see a stream of it; a participant waiting for the host's place has none.
    func isOnStage(_ person: Person, _ line: Line) -> Bool {
        wantsStage(person, line)
            && (!isLiveEvent || hosts.prefix(number("maxHosts") ?? 0).contains(person.id))
    }

    func stream(_ person: Person, _ transport: Transport, isScreen: Bool) -> Stream? {
        streams.first {
            $0.owner == person.id && $0.transport == transport.name && $0.isScreen == isScreen
        }
    }

    /// Whether the publisher's gate is open.
    func isOpen(_ person: Person, _ transport: Transport, _ line: Line) -> Bool {
        let isRoomMuted = line.kind == "audio" && isSilenced(person)
        let stream = stream(person, transport, isScreen: line.isScreen)
        return isOnStage(person, line) && !isRoomMuted && !person.hardMuted.contains(line.kind)
            && stream?.off.contains(line.kind) == false
    }

    func watches(_ viewer: Person, _ publisher: Person) -> Bool {
        guard viewer.id != publisher.id,
            let roles = role(viewer.role)?["subscribe"]?["roles"]
        else { return true }
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

    /// Returns why a subscription has no video.
    private func videoDisabled(_ subscription: Subscription, _ stream: Stream) -> String? {
        guard subscription.mids["video"] != nil, stream.kinds.contains("video"),
            person(subscription.participant)?.isAwaited == false
        else { return nil }
        if person(stream.owner)?.hardMuted.contains("video") == true { return "muted" }
        if stream.off.contains("video") { return "publisher" }
        if subscription.off.contains("video") { return "subscriber" }
        return nil
    }

    /// Updates streams and subscriptions to the formula, and reports the changes.
    ///
    /// Call it within a call before any other event of the call is reported.
    ///
    /// Those who wait for a host's place get it only if `seating`.
    mutating func settle(
        from before: ReferenceRoom,
        because reason: String,
        seating: Bool = true
    ) {
        if seating { seatHosts(from: before) }
        settleStreams(from: before, because: reason)
        settleSubscriptions(from: before)
    }

    /// Appends new senders to the line of hosts, and removes those who have stopped.
    private mutating func seatHosts(from before: ReferenceRoom) {
        guard isLiveEvent else { return }
        let wanting = inOrder(from: before).filter { person in
            person.transports.contains { $0.lines.contains { wantsStage(person, $0) } }
                || expectedHosts[person.id] != nil && mayHost(person)
        }.map(\.id)
        expectedHosts = expectedHosts.filter { wanting.contains($0.key) }
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
                        "reason": .string(lacksPlaceAlone(stream) ? "host-place-lost" : reason),
                    ]
                )
            } else {
                settled.append(stream)
            }
        }
        streams = settled
        for stream in streams {
            let former = before.streams.first { $0.id == stream.id }
            let isSwitched = former?.off.symmetricDifference(stream.off).isEmpty == false
            if let former, isSwitched || before.shown(former) != shown(stream) {
                alsoTell("stream.changed", named(stream))
            }
        }
        for person in inOrder(from: before) {
            for transport in person.transports {
                for isScreen in [false, true]
                where stream(person, transport, isScreen: isScreen) == nil {
                    create(person, transport, isScreen: isScreen)
                }
            }
        }
    }

    /// Returns the participants; those who waited outside come after those who were in.
    private func inOrder(from before: ReferenceRoom) -> [Person] {
        let waited = people.filter { before.person($0.id)?.isAwaited == true }.map(\.id)
        return people.filter { !waited.contains($0.id) } + people.filter { waited.contains($0.id) }
    }

    /// Whether a stream has gone because its owner has lost the host's place.
    private func lacksPlaceAlone(_ stream: Stream) -> Bool {
        guard let owner = person(stream.owner) else { return false }
        return owner.transports.contains { transport in
            transport.name == stream.transport
                && transport.lines.contains {
                    $0.isScreen == stream.isScreen && wantsStage(owner, $0)
                }
        }
    }

    private func kinds(of stream: Stream) -> Set<String> {
        let owner = person(stream.owner)
        let transport = owner?.transports.first { $0.name == stream.transport }
        guard let owner, let transport else { return [] }
        let lines = transport.lines.filter {
            $0.isScreen == stream.isScreen && isOnStage(owner, $0)
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
        alsoTell("stream.created", named(stream))
    }

    private func named(_ stream: Stream) -> [String: JSON?] {
        [
            "stream": .string(stream.id), "participant": .string(stream.owner),
            "streamInfo": shown(stream),
        ]
    }

    /// Removes a subscription's slots that no longer exist.
    func keepSlots(of subscription: inout Subscription, _ viewer: Person) {
        let slots = viewer.transports.flatMap(\.lines).filter(\.receives).map(\.mid)
        subscription.mids = subscription.mids.filter { slots.contains($0.value) }
        // For a removed slot there is nothing to report.
        if subscription.mids["video"] == nil { subscription.disabled = nil }
    }

    /// Takes free slots, one for each kind that the stream has and the subscription lacks.
    func takeFreeSlots(for subscription: inout Subscription, _ stream: Stream) {
        let id = subscription.participant
        let taken = subscriptions.filter { $0.participant == id }.flatMap(\.mids.values)
        let free = (person(id)?.transports ?? []).flatMap(\.lines).filter {
            $0.receives && !taken.contains($0.mid)
        }
        for kind in stream.kinds where subscription.mids[kind] == nil {
            subscription.mids[kind] = free.first { $0.kind == kind }?.mid
        }
    }

    private func named(_ subscription: Subscription) -> [String: JSON?] {
        [
            "subscription": .string(subscription.id),
            "participant": .string(subscription.participant),
            "stream": .string(subscription.stream),
        ]
    }

    mutating func tellEnd(of subscription: Subscription, because reason: String) {
        let isAwaited = person(subscription.participant)?.isAwaited == true
        alsoTell(
            "subscription.disconnected",
            to: isAwaited && reason == "role" ? [] : [subscription.participant],
            named(subscription).merging(["final": true, "reason": .string(reason)]) { $1 }
        )
    }

    private mutating func settleSubscriptions(from before: ReferenceRoom) {
        // Slots of ended streams are free for subscriptions that have got another kind.
        let left = Set(streams.map(\.id))
        subscriptions.removeAll { !left.contains($0.stream) }
        var settled: [Subscription] = []
        for var subscription in subscriptions {
            guard let stream = streams.first(where: { $0.id == subscription.stream }),
                let publisher = person(stream.owner),
                let viewer = person(subscription.participant)
            else { continue }
            keepSlots(of: &subscription, viewer)
            guard !subscription.mids.isEmpty else { continue }
            let former = before.streams.first { $0.id == stream.id }
            if former?.kinds != stream.kinds { takeFreeSlots(for: &subscription, stream) }
            guard watches(viewer, publisher) else {
                tellEnd(of: subscription, because: "role")
                continue
            }
            let disabled = videoDisabled(subscription, stream)
            if disabled != subscription.disabled {
                let isOver = disabled == nil
                alsoTell(
                    isOver ? "subscription.videoEnabled" : "subscription.videoDisabled",
                    to: [viewer.id],
                    named(subscription).merging(
                        ["reason": (disabled ?? subscription.disabled).json]
                    ) { $1 }
                )
                subscription.disabled = disabled
            }
            settled.append(subscription)
        }
        subscriptions = settled
    }
}
