import RTP
package import WorkerInterface

// Objects of another host's room under the names that they have at this one.

extension Room {
    /// Location of a slot: a worker and the handle there.
    package struct SlotLocation: Hashable, Sendable {
        package var worker: Int
        package var id: SlotID

        package init(worker: Int, id: SlotID) {
            self.worker = worker
            self.id = id
        }
    }

    /// New names of a room's objects, by those that another host gave them.
    package struct Renaming: Sendable {
        package var transports: [TransportLocation: TransportLocation] = [:]
        /// Publications and their mirrors.
        package var publications: [RelayTarget: RelayTarget] = [:]
        package var slots: [SlotLocation: SlotID] = [:]
        /// Transports that go on, by their old names.
        package var kept: Set<TransportLocation> = []

        package init() {}

        /// New number of each worker where a transport goes on.
        var workers: [Int: Int] {
            var workers: [Int: Int] = [:]
            for old in kept { workers[old.worker] = transports[old]?.worker }
            return workers
        }
    }
}

extension Room.ForeignParts {
    /// A transport at the other host, or at a node where that had it.
    package struct Transport: Sendable {
        /// Node of its participant; `nil` for the other host itself.
        package var node: String?
        package var place: Room.TransportLocation
        /// Handles of the transport, its tracks and its slots.
        package var handles: Room.Handles
        package var connection: Room.Connection
    }

    package var transports: [Transport] {
        participants.map(\.participant).flatMap { participant in
            participant.transports.map { transport in
                var handles = Room.Handles()
                handles.transports = [transport.place.id]
                handles.publications = transport.tracks.map(\.publication)
                handles.slots = transport.slots.map(\.id)
                return Transport(
                    node: participant.node(of: transport),
                    place: transport.place,
                    handles: handles,
                    connection: transport.connection
                )
            }
        }
    }

    /// Other nodes where participants have transports.
    package var nodes: Set<String> { Set(transports.compactMap(\.node)) }

    /// Mirrors that a slot of one of these transports is bound to.
    package func mirrors(usedBy kept: Set<Room.TransportLocation>) -> [Room.SavedMirrors] {
        var used: Set<RelayTarget> = []
        var users: [Int: Set<RelayTarget>] = [:]
        for transport in participants.flatMap(\.participant.transports)
        where kept.contains(transport.place) {
            for home in transport.slots.compactMap(\.bound?.home) {
                used.insert(home)
                users[transport.place.worker, default: []].insert(home)
            }
        }
        return mirrors.filter { used.contains($0.home) }
            .compactMap { saved in
                let targets = saved.mirrors.filter {
                    users[$0.worker]?.contains(saved.home) == true
                }
                guard !targets.isEmpty else { return nil }
                return Room.SavedMirrors(home: saved.home, mirrors: targets)
            }
    }

    /// Empties slots whose subscription does not have them: only a damaged record has any.
    private mutating func unbindStraySlots() {
        var known: [UInt64: Room.Subscription] = [:]
        for subscription in subscriptions { known[subscription.number] = subscription }
        for index in participants.indices {
            participants[index].unbindSlots { participant, transport, slot, feed in
                let name = Room.SlotName(transport: transport.name, mid: slot.mid)
                guard let subscription = known[feed.subscription] else { return true }
                return subscription.participant != participant.id
                    || !subscription.slots.values.contains(name)
            }
        }
    }

    /// Gives all objects their new names; what goes on keeps what it carries.
    mutating func rename(
        _ renaming: Room.Renaming,
        at node: String
    ) throws(Room.InconsistentParts) {
        unbindStraySlots()
        let used = mirrors(usedBy: renaming.kept)
        for index in participants.indices {
            participants[index] = try participants[index].renamed(renaming, at: node)
        }
        for index in streams.indices { try streams[index].rename(renaming) }
        var renamed: [Room.SavedMirrors] = []
        for saved in used {
            guard let home = renaming.publications[saved.home] else {
                throw Room.InconsistentParts(cause: "the publication of a mirror is missing")
            }
            let targets = saved.mirrors.compactMap { renaming.publications[$0] }
            renamed.append(Room.SavedMirrors(home: home, mirrors: targets))
        }
        mirrors = renamed
        var fed: [RelayTarget: Set<Int>] = [:]
        for saved in renamed { fed[saved.home] = Set(saved.mirrors.map(\.worker)) }
        for index in participants.indices {
            // Media that does not come to the slot's worker.
            participants[index].unbindSlots { _, transport, _, feed in
                feed.home.worker != transport.place.worker
                    && fed[feed.home]?.contains(transport.place.worker) != true
            }
        }
    }
}

extension Room.SavedParticipant {
    fileprivate func renamed(
        _ renaming: Room.Renaming,
        at own: String
    ) throws(Room.InconsistentParts) -> Self {
        var participant = participant
        for index in participant.transports.indices {
            try participant.transports[index].rename(renaming)
            let node = self.participant.node(of: self.participant.transports[index])
            participant.transports[index].site = Room.Site(node: node == own ? nil : node)
        }
        let goesOn = self.participant.transports.contains { renaming.kept.contains($0.place) }
        if !goesOn || participant.node == own { participant.node = nil }
        if participant.move?.node == own { participant.move?.node = nil }
        return Self(participant: participant, following: following)
    }

    /// Empties bound slots of which `isStray` says so.
    fileprivate mutating func unbindSlots(
        _ isStray: (Room.Participant, Room.Transport, Room.Slot, Room.Feed) -> Bool
    ) {
        var participant = participant
        for (index, transport) in participant.transports.enumerated() {
            for (place, slot) in transport.slots.enumerated() {
                guard let feed = slot.bound, isStray(participant, transport, slot, feed) else {
                    continue
                }
                participant.transports[index].slots[place].bound = nil
            }
        }
        self = Self(participant: participant, following: following)
    }
}

extension Room.Transport {
    fileprivate mutating func rename(
        _ renaming: Room.Renaming
    ) throws(Room.InconsistentParts) {
        let old = place
        guard let new = renaming.transports[old] else {
            throw Room.InconsistentParts(cause: "a transport has no new name")
        }
        place = new
        for index in tracks.indices {
            let target = RelayTarget(worker: old.worker, publication: tracks[index].publication)
            guard let name = renaming.publications[target] else {
                throw Room.InconsistentParts(cause: "a publication has no new name")
            }
            tracks[index].configuration.id = name.publication
        }
        for index in slots.indices {
            let slot = Room.SlotLocation(worker: old.worker, id: slots[index].id)
            guard let name = renaming.slots[slot] else {
                throw Room.InconsistentParts(cause: "a slot has no new name")
            }
            slots[index].id = name
            let home = slots[index].bound.flatMap { renaming.publications[$0.home] }
            if let home, renaming.kept.contains(old) {
                slots[index].bound?.home = home
            } else {
                slots[index].bound = nil
            }
        }
    }
}

extension Room.Stream {
    fileprivate mutating func rename(
        _ renaming: Room.Renaming
    ) throws(Room.InconsistentParts) {
        let old = MediaKind.allCases.map { ($0, home($0)) }
        for case (let kind, let target?) in old {
            guard let name = renaming.publications[target] else {
                throw Room.InconsistentParts(cause: "a stream's publication is missing")
            }
            set(name, for: kind)
        }
        var moved: [Int: UInt8] = [:]
        let workers = renaming.workers
        for (worker, mask) in demand {
            if let worker = workers[worker] { moved[worker, default: 0] |= mask }
        }
        demand = moved
    }
}

extension Room.SavedNegotiation {
    /// Handles of the transport's tracks and slots.
    package var handles: Room.Handles {
        var handles = state.negotiation.handles
        handles.transports = [transport.id]
        handles.slots += state.configuration.slots.map(\.id)
        return handles
    }

    /// The same under the new names of its transport's objects; `nil` if one has none.
    package func renamed(_ renaming: Room.Renaming, local: LocalParameters) -> Self? {
        guard let place = renaming.transports[transport] else { return nil }
        let old = transport.worker
        var negotiation = state.negotiation
        guard
            negotiation.rename(
                publication: { id in
                    renaming.publications[RelayTarget(worker: old, publication: id)]?.publication
                },
                slot: { renaming.slots[Room.SlotLocation(worker: old, id: $0)] }
            )
        else { return nil }
        negotiation.take(local)
        var configuration = state.configuration
        for index in configuration.slots.indices {
            let slot = Room.SlotLocation(worker: old, id: configuration.slots[index].id)
            guard let name = renaming.slots[slot] else { return nil }
            configuration.slots[index].id = name
        }
        let renamed = Room.NegotiatedState(negotiation, configuration)
        return Self(transport: place, state: renamed)
    }
}
