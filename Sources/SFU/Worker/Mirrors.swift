import RTP
import WorkerInterface

/// Creation and removal of mirrors: publications whose home is another worker.
extension Core {
    /// Creates a mirror, or updates it after a new negotiation.
    mutating func mirror(_ mirror: Mirror, at now: Instant) {
        let id = mirror.configuration.id
        let publication = id.place
        guard receiver.publications.contains(id) else {
            return relays.addMirror(mirror, at: now, &transports, &receiver)
        }
        guard let home = receiver.publications[publication].home else { return }
        if home != mirror.home { relays.moveHome(of: publication, to: mirror.home, &receiver) }
        update(mirror.configuration, at: now)
        gate(id, open: mirror.open, at: now)
    }

    mutating func unmirror(_ id: PublicationID) {
        guard receiver.publications.contains(id), receiver.publications[id.place].home != nil
        else { return }
        let home = receiver.publications[id.place].home
        if receiver.publications[id.place].wanted != 0 {
            emit(.layersWanted(id, home: home, 0))
        }
        remove(publication: id.place)
    }
}
