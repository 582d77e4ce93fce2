import RTP
import WorkerInterface

// A room made from its saved parts.

extension Room {
    /// Parts of a room that do not fit together.
    package struct InconsistentParts: Error, Hashable { package let cause: String }

    /// Makes a room from its saved parts.
    ///
    /// Operations that awaited their fences are complete; who talks is measured anew. Without
    /// `negotiations`, the transports cannot go on. `mirrored`: workers below this number keep
    /// their mirrors, and the slots that are bound to these; so do those of nodes that are known.
    ///
    /// - Throws: `InconsistentParts` if a part needs another that is missing.
    package init(
        _ saved: Saved,
        settings: Settings,
        participants savedParticipants: [SavedParticipant],
        streams savedStreams: [Stream],
        subscriptions savedSubscriptions: [Subscription],
        negotiations: [SavedNegotiation]?,
        mirrors savedMirrors: [SavedMirrors],
        keptBelow mirrored: Int? = nil,
        shared: Shared
    ) throws(InconsistentParts) {
        name = saved.name
        self.settings = settings
        lifecycle = saved.lifecycle
        moderation = saved.moderation
        taps = saved.taps
        placement = Placement(firstWorker: saved.firstWorker)
        guard shared.locals.indices.contains(saved.firstWorker) else {
            throw InconsistentParts(cause: "worker \(saved.firstWorker) is missing")
        }
        for part in savedParticipants.sorted(by: { $0.participant.birth < $1.participant.birth }) {
            try restore(part, shared)
        }
        for stream in savedStreams { streams[stream.id] = stream }
        for subscription in savedSubscriptions { subscriptions[subscription.number] = subscription }
        if let negotiations {
            restore(negotiations, shared)
            try checkNegotiations()
        }
        try checkParts()
        try restore(savedMirrors) { worker in
            worker < mirrored ?? shared.locals.count || shared.node(of: worker) != nil
        }
        restoreLosses()
        restore(saved.speakers)
    }

    private mutating func restore(
        _ part: SavedParticipant,
        _ shared: Shared
    ) throws(InconsistentParts) {
        var participant = part.participant
        let id = participant.id
        guard settings.role(named: participant.role) != nil else {
            throw InconsistentParts(cause: "role \"\(participant.role)\" is missing")
        }
        participant.session.settleAll()
        for index in participant.transports.indices {
            let worker = participant.transports[index].place.worker
            guard shared.hasPlace(worker) else {
                throw InconsistentParts(cause: "worker \(worker) is missing")
            }
            let place = participant.transports[index].place
            placement.add(.transport(worker: worker, place.id), of: id)
            for track in participant.transports[index].tracks.indices {
                participant.transports[index].tracks[track].speaking = nil
                let publication = participant.transports[index].tracks[track].publication
                placement.add(.publication(worker: worker, publication), of: id)
            }
        }
        participants[id] = participant
        speakers.followers[id] = part.following
    }

    mutating func restore(_ negotiations: [SavedNegotiation], _ shared: Shared) {
        for saved in negotiations {
            let worker = saved.transport.worker
            guard shared.hasPlace(worker) else { continue }
            var negotiation = saved.state.negotiation
            if shared.locals.indices.contains(worker) { negotiation.take(shared.locals[worker]) }
            placement.negotiated[saved.transport] = NegotiatedState(
                negotiation,
                saved.state.configuration
            )
        }
    }

    private func checkNegotiations() throws(InconsistentParts) {
        for transport in participants.values.flatMap(\.transports)
        where placement.negotiated[transport.place] == nil {
            throw InconsistentParts(cause: "the negotiation of a transport is missing")
        }
    }

    private func checkParts() throws(InconsistentParts) {
        for participant in participants.values {
            for id in participant.streams where streams[id]?.participant != participant.id {
                throw InconsistentParts(cause: "stream \(id) is missing")
            }
            for number in participant.subscriptions
            where subscriptions[number]?.participant != participant.id {
                throw InconsistentParts(cause: "subscription \(number) is missing")
            }
        }
        for stream in streams.values {
            guard participants[stream.participant]?.streams.contains(stream.id) == true else {
                throw InconsistentParts(cause: "participant \(stream.participant) is missing")
            }
            for number in stream.subscribers where subscriptions[number]?.stream != stream.id {
                throw InconsistentParts(cause: "subscription \(number) is missing")
            }
        }
        for subscription in subscriptions.values {
            guard streams[subscription.stream]?.subscribers.contains(subscription.number) == true,
                participants[subscription.participant]?.subscriptions
                    .contains(subscription.number) == true
            else { throw InconsistentParts(cause: "subscription \(subscription.number) is alone") }
        }
    }

    /// Restores the mirrors in other workers; those in the tap thread end with it, and those at
    /// nodes that are not known with the transports there, which are lost.
    private mutating func restore(
        _ saved: [SavedMirrors],
        keptAt isKept: (_ worker: Int) -> Bool
    ) throws(InconsistentParts) {
        unbindSlots(exceptAt: isKept)
        for saved in saved {
            guard let track = track(of: saved.home) else {
                throw InconsistentParts(cause: "the publication of a mirror is missing")
            }
            var relay = Relay()
            for target in saved.mirrors where isKept(target.worker) {
                var mirror = Mirror(
                    configuration: track.configuration,
                    home: saved.home,
                    open: track.gate ?? false
                )
                mirror.configuration.id = target.publication
                relay.mirrors[target.worker] = KnownMirror(lastSent: mirror)
            }
            relay.lastSent = relay.targets
            if !relay.mirrors.isEmpty { placement.relays[saved.home] = relay }
        }
        for transport in participants.values.flatMap(\.transports) {
            let worker = transport.place.worker
            for home in transport.slots.compactMap(\.bound?.home) {
                guard track(of: home) != nil, placement.publication(home, in: worker) != nil else {
                    throw InconsistentParts(cause: "the publication of a slot is missing")
                }
                guard worker != home.worker else { continue }
                placement.relays[home]?.mirrors[worker]?.users += 1
            }
        }
        let users = placement.relays.values.flatMap(\.mirrors.values).map(\.users)
        guard !users.contains(0) else {
            throw InconsistentParts(cause: "the slots of a mirror are missing")
        }
    }

    /// Empties the slots of transports that are lost.
    private mutating func unbindSlots(exceptAt isKept: (_ worker: Int) -> Bool) {
        for participant in Array(participants.values) {
            for (index, transport) in participant.transports.enumerated()
            where !isKept(transport.place.worker) {
                for slot in transport.slots.indices {
                    participants[participant.id]?.transports[index].slots[slot].bound = nil
                }
            }
        }
    }

    private mutating func restoreLosses() {
        let lost = participants.values.compactMap { participant in
            participant.lost.map { Absences.Loss(participant: participant.id, at: $0) }
        }
        let ordered = lost.sorted { ($0.at, $0.participant) < ($1.at, $1.participant) }
        for loss in ordered { absences.add(loss) }
    }

    /// Restores the order of the speakers; all are silent until the workers hear them again.
    private mutating func restore(_ saved: SavedSpeakers) {
        let heard = saved.talkers.filter { $0.isTalking || !$0.isPinned }
        for talker in heard.reversed() {
            speakers.ranking.started(talker.participant)
            if !talker.isTalking { speakers.ranking.stopped(talker.participant) }
        }
        speakers.lists = makeSpeakerLists()
        speakers.announced = saved.isDue ? SpeakerLists() : speakers.lists
        speakers.announcedAt = saved.announcedAt
        for talker in heard { speakers.ranking.stopped(talker.participant) }
        speakers.isStale = true
    }
}

extension Room.Session {
    /// Leaves out the quality of ended transports, which nobody will report any more.
    mutating func settleAll() {
        for transport in ending { settle(transport, nil) }
    }
}
