import RTP
import WorkerInterface

// Slots that follow the active-speaker list (`talkers.subscribe`). They carry ordinary
// subscriptions, which are made and ended here as the list changes.

extension Room {
    /// Makes slots follow the participant's active-speaker list; no slots end the following.
    mutating func follow(_ call: Follow, _ transaction: inout RoomTransaction) throws(CallError) {
        let subscriber = try participant(call.participant)
        let before = speakers.followers[call.participant]
        transaction.isFenced = before != nil
        guard !(call.audioMids + call.videoMids).isEmpty else {
            stopFollowing(call.participant, &transaction)
            return
        }
        try checkMayWatch(subscriber)
        var slots: [MediaKind: [SlotName]] = [.audio: [], .video: []]
        for kind in MediaKind.allCases {
            for mid in call.mids(kind) {
                slots[kind, default: []].append(
                    try namedSlot(mid, kind, of: subscriber, following: true)
                )
            }
        }
        let following = Following(
            audio: slots[.audio] ?? [],
            video: slots[.video] ?? [],
            preferences: call.preferences
        )
        for kind in MediaKind.allCases {
            for name in before?.slots(kind) ?? [] where !following.slots(kind).contains(name) {
                stopFollowing(name, of: call.participant, &transaction)
            }
            for name in following.slots(kind) {
                withSlot(name, of: call.participant) { $0.follows = true }
            }
        }
        speakers.followers[call.participant] = following
        for number in followed(by: call.participant) {
            subscriptions[number]?.preferences = call.preferences
        }
    }

    /// Returns the preferences of a participant's following slots; `nil` if it has none.
    package func preferences(ofFollowing participant: String) -> Preferences? {
        speakers.followers[participant]?.preferences
    }

    /// Ends the following of all slots of a participant.
    private mutating func stopFollowing(_ id: String, _ transaction: inout RoomTransaction) {
        guard let following = speakers.followers[id] else { return }
        for name in following.audio + following.video {
            stopFollowing(name, of: id, &transaction)
        }
        speakers.followers[id] = nil
    }

    /// Ends the following of one slot.
    mutating func stopFollowing(
        _ name: SlotName,
        of id: String,
        _ transaction: inout RoomTransaction
    ) {
        if let (slot, _) = seat(name, of: id), slot.follows {
            release(slot, name, &transaction)
            withSlot(name, of: id) { $0.follows = false }
        }
        guard var following = speakers.followers[id] else { return }
        following.audio.removeAll { $0 == name }
        following.video.removeAll { $0 == name }
        let isOver = following.audio.isEmpty && following.video.isEmpty
        speakers.followers[id] = isOver ? nil : following
    }

    /// Returns the subscriptions made by following slots.
    private func followed(by id: String) -> [UInt64] {
        (participants[id]?.subscriptions ?? []).filter { subscriptions[$0]?.follows == true }
    }

    /// Marks the followers affected by a change of the lists.
    mutating func noteFollowers(of before: SpeakerLists) {
        guard !speakers.followers.isEmpty else { return }
        for id in before.own.keys { speakers.followers.note(id) }
        for id in speakers.lists.own.keys { speakers.followers.note(id) }
        for shape in speakers.followers.shapesInUse {
            var lineUp: [MediaKind: [String]] = [:]
            for kind in MediaKind.allCases {
                let streams = candidates(kind, on: speakers.lists.common)
                // With a slot for every stream, the order of the list is irrelevant.
                let isOrdered = streams.count > shape.count(kind)
                lineUp[kind] = isOrdered ? streams : streams.sorted()
            }
            speakers.followers.note(lineUp, for: shape)
        }
    }

    /// Returns the streams of a list that have this kind, by priority.
    ///
    /// Pinned participants come first, in the order of their pins, then speakers by their most
    /// recent start of speech.
    private func candidates(_ kind: MediaKind, on list: [Talker]) -> [String] {
        let pinned = pins.compactMap { pin in list.first { $0.isPinned && $0.participant == pin } }
        return (pinned + list.filter { !$0.isPinned }).compactMap(\.stream)
            .filter { streams[$0]?.publication(kind) != nil }
    }

    /// Reassigns the slots of all affected followers.
    mutating func reconcileFollowers(_ transaction: inout RoomTransaction) {
        for id in speakers.followers.takeStale() {
            reconcile(follower: id, &transaction)
        }
    }

    /// Gives the slots of speakers that left the list to those that joined it.
    ///
    /// A speaker that stays keeps its slot, whatever its position, so workers get no command for
    /// it.
    private mutating func reconcile(
        follower id: String,
        _ transaction: inout RoomTransaction
    ) {
        guard let following = speakers.followers[id], let subscriber = participants[id] else {
            return
        }
        let wanted = wanted(by: subscriber, following)
        var held: [String: UInt64] = [:]
        var vacated: [SlotName] = []
        var ended: [(subscription: Subscription, slots: [SlotName])] = []
        for number in followed(by: id) {
            guard var subscription = subscriptions[number] else { continue }
            let slots = Array(subscription.slots.values)
            for kind in MediaKind.allCases {
                guard let name = subscription.slot(kind),
                    wanted[kind]?.contains(subscription.stream) != true
                else { continue }
                withSlot(name, of: id) { $0.subscription = nil }
                vacated.append(name)
                subscription.set(nil, for: kind)
                countEnd(of: kind, in: &subscription, at: transaction.shared.now)
            }
            subscriptions[number] = subscription
            if subscription.slots.isEmpty {
                // The slots keep forwarding until their next stream is known.
                end(subscription: number, &transaction)
                ended.append((subscription, slots))
            } else {
                held[subscription.stream] = number
            }
        }
        seat(wanted, in: following, of: id, &held, &transaction)
        for name in vacated where isVacant(name, of: id) {
            unbind(name, of: id, &transaction)
        }
        for (subscription, slots) in ended
        where slots.allSatisfy({ isVacant($0, of: id) }) {
            transaction.announce(
                .subscriptionDisconnected(subscription, isFinal: true, .talkers),
                to: .only([id])
            )
        }
    }

    /// Returns the streams that a follower's slots should carry.
    ///
    /// Streams that it has subscribed to itself need no second slot. Streams that its role may not
    /// receive get none. One that awaits approval gets nothing: it would learn who speaks.
    private func wanted(
        by subscriber: Participant,
        _ following: Following
    ) -> [MediaKind: [String]] {
        guard subscriber.admitted else { return [:] }
        let chosen = subscriber.subscriptions.compactMap { number in
            subscriptions[number].flatMap { $0.follows ? nil : $0.stream }
        }
        let list = speakers.lists.list(for: subscriber.id)
        var wanted: [MediaKind: [String]] = [:]
        for kind in MediaKind.allCases {
            let fitting = candidates(kind, on: list).filter { id in
                guard !chosen.contains(id), let stream = streams[id],
                    let publisher = participants[stream.participant]
                else { return false }
                return mayReceive(from: publisher, subscriber) != .closed(.role)
            }
            wanted[kind] = Array(fitting.prefix(following.slots(kind).count))
        }
        return wanted
    }

    /// Assigns free slots to streams that have none.
    private mutating func seat(
        _ wanted: [MediaKind: [String]],
        in following: Following,
        of id: String,
        _ held: inout [String: UInt64],
        _ transaction: inout RoomTransaction
    ) {
        var changed: Set<UInt64> = []
        for kind in MediaKind.allCases {
            for stream in wanted[kind] ?? [] {
                var present: Subscription?
                if let number = held[stream] { present = subscriptions[number] }
                guard present?.slot(kind) == nil,
                    let name = vacantSlot(kind, in: following, of: id, beside: present)
                else { continue }
                let number = present?.number ?? make(stream, following, of: id, &transaction)
                held[stream] = number
                subscriptions[number]?.set(name, for: kind)
                // Announce the connection again, with the new slots.
                subscriptions[number]?.connected = false
                if kind == .audio {
                    let start = recentStart(of: stream, at: transaction.shared.now)
                    subscriptions[number]?.preroll = start
                }
                withSlot(name, of: id) { $0.subscription = number }
                changed.insert(number)
            }
        }
        for number in changed.sorted() { reconcile(subscription: number, &transaction) }
    }

    /// Returns the start of a recent speech of the stream's publisher, to replay its held audio.
    ///
    /// `nil` if nobody has just begun to speak.
    private func recentStart(of stream: String, at now: Instant) -> Instant? {
        guard let stream = streams[stream], let publisher = participants[stream.participant],
            let transport = publisher.transports.first(where: { $0.name == stream.transport }),
            let track = transport.tracks.first(where: { $0.isVoice && stream.carries($0) }),
            let start = track.speaking,
            now.milliseconds(since: start) < Self.recentMilliseconds
        else { return nil }
        // A packet starts before its loud part.
        return start.advanced(milliseconds: -Self.leadMilliseconds)
    }

    /// Maximum age of a start of speech that is replayed.
    private static let recentMilliseconds: Int64 = 1_000
    static let leadMilliseconds: Int64 = 20

    private func isVacant(_ name: SlotName, of id: String) -> Bool {
        seat(name, of: id)?.slot.subscription == nil
    }

    private mutating func make(
        _ stream: String,
        _ following: Following,
        of id: String,
        _ transaction: inout RoomTransaction
    ) -> UInt64 {
        transaction.shared.lastSubscription += 1
        let number = transaction.shared.lastSubscription
        var subscription = Subscription(
            number: number,
            participant: id,
            stream: stream,
            preferences: following.preferences
        )
        subscription.follows = true
        subscriptions[number] = subscription
        participants[id]?.subscriptions.append(number)
        streams[stream]?.subscribers.insert(number)
        open(.subscription(number), for: id, &transaction)
        return number
    }

    /// Returns a free slot, preferring one that the client plays in sync with the other kind's.
    private func vacantSlot(
        _ kind: MediaKind,
        in following: Following,
        of id: String,
        beside present: Subscription?
    ) -> SlotName? {
        let partner = present?.slot(kind.other).flatMap { seat($0, of: id)?.slot.pair }
        let partners = following.slots(kind.other).compactMap { seat($0, of: id)?.slot }
        let free = following.slots(kind).filter { isVacant($0, of: id) }
        let best = free.first { name in
            guard let pair = seat(name, of: id)?.slot.pair else { return false }
            if let partner { return partner == pair }
            return partners.contains { $0.pair == pair && $0.subscription == nil }
        }
        return best ?? free.first
    }
}
