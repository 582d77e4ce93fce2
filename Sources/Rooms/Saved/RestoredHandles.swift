package import WorkerInterface

extension Room {
    /// Handles of a room in one worker.
    package struct Handles: Sendable {
        package var transports: [TransportID] = []
        package var publications: [PublicationID] = []
        package var slots: [SlotID] = []

        package init() {}

        package mutating func add(_ others: Self) {
            transports += others.transports
            publications += others.publications
            slots += others.slots
        }
    }

    /// Returns the handles that the room has, by worker.
    package var handles: [Int: Handles] {
        var handles: [Int: Handles] = [:]
        for transport in participants.values.flatMap(\.transports) {
            var own = handles[transport.place.worker] ?? Handles()
            own.transports.append(transport.place.id)
            own.publications += transport.tracks.map(\.publication)
            own.slots += transport.slots.map(\.id)
            handles[transport.place.worker] = own
        }
        for relay in placement.relays.values {
            for (worker, mirror) in relay.mirrors {
                handles[worker, default: Handles()].publications.append(mirror.id)
            }
        }
        return handles
    }

    /// Transports at a place of another node.
    package func transports(at place: Int) -> [ForeignParts.Transport] {
        participants.values.sorted { $0.birth < $1.birth }.flatMap(\.transports)
            .filter { $0.place.worker == place }
            .map { transport in
                var handles = Handles()
                handles.transports = [transport.place.id]
                handles.publications = transport.tracks.map(\.publication)
                handles.slots = transport.slots.map(\.id)
                return ForeignParts.Transport(
                    place: transport.place,
                    handles: handles,
                    connection: transport.connection
                )
            }
    }

    /// Mirrors at a place of another node.
    package func mirrors(at place: Int) -> [PublicationID] {
        placement.relays.values.compactMap { $0.mirrors[place]?.id }
            .sorted { $0.index < $1.index }
    }
}

extension Room.Shared {
    /// Gives no number again that a restored room has, even if the process died before it had saved
    /// that the number was given.
    ///
    /// Such numbers are a little above the last one. Those far above are other nodes', from where
    /// the room has come, and they go on counting there.
    package mutating func skipNumbers(of rooms: [Room]) {
        let first = lastSubscription
        for number in rooms.flatMap(\.subscriptions.keys)
        where number > first && number - first < Self.numbersPerLife {
            lastSubscription = max(lastSubscription, number)
        }
        guard let service = taps else { return }
        taps?.lastID = rooms.compactMap(\.taps.ids.last).reduce(service.lastID, max)
    }

    /// Numbers of subscriptions that a node of a cluster may give before it meets another's.
    private static let numbersPerLife: UInt64 = 1 << 24
}

extension WorkerIdentifiers {
    /// Makes the pools anew, with these handles in use and no other given before.
    package mutating func restore(
        _ used: Room.Handles,
        transportsAbove transport: UInt32,
        publicationsAbove publication: UInt32,
        slotsAbove slot: UInt32
    ) {
        transports.restore(used.transports, above: transport)
        publications.restore(used.publications, above: publication)
        slots.restore(used.slots, above: slot)
    }
}
