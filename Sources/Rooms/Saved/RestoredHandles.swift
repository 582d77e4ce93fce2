package import WorkerInterface

extension Room {
    /// Handles of a room in one worker.
    package struct Handles: Sendable {
        package var transports: [TransportID] = []
        package var publications: [PublicationID] = []
        package var slots: [SlotID] = []
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
}
