import RTP

@testable import SFU
@testable import WorkerInterface

// Gates and slots: the workers' state, against the formula for each pair.
extension RandomWalk {
    /// Returns the first gate or slot on which workers and model differ.
    func wrongGate() -> String? {
        for room in model.rooms.values {
            for person in room.people {
                for transport in person.transports {
                    if let wrong = wrongGate(room, person, transport) { return wrong }
                }
            }
        }
        return nil
    }

    private func wrongGate(
        _ room: ReferenceRoom,
        _ person: ReferenceRoom.Person,
        _ transport: ReferenceRoom.Transport
    ) -> String? {
        let name = "\(room.name) \(person.id) \(transport.name)"
        guard let (worker, id) = transports[name],
            let configuration = workers[worker].transports[id]
        else { return "\(name): no worker has it" }
        for line in transport.lines {
            let publication = configuration.publications.first { $0.mid == line.mid }
            let isOpen = publication.flatMap { workers[worker].gates[$0.id] }
            let expected =
                line.sends && line.refused == nil ? room.isOpen(person, transport, line) : nil
            if isOpen != expected {
                return "\(name) \(line.mid): gate \(word(isOpen)), wanted \(word(expected))"
            }
            guard line.receives, let slot = configuration.slots.first(where: { $0.mid == line.mid })
            else {
                if line.receives { return "\(name) \(line.mid): no slot" }
                continue
            }
            let came = carried(workers[worker], slot.id)
            let wanted = carried(room, person, line)
            if came?.publication != wanted?.publication || came?.open != wanted?.open {
                return "\(name) \(line.mid): carries \(String(describing: came)), "
                    + "wanted \(String(describing: wanted))"
            }
        }
        return nil
    }

    private func word(_ isOpen: Bool?) -> String {
        isOpen.map { $0 ? "open" : "closed" } ?? "none"
    }

    private func carried(
        _ worker: WalkWorker,
        _ slot: SlotID
    ) -> (publication: RelayTarget, open: Bool)? {
        guard let binding = worker.bindings[slot], let home = worker.home(of: binding.publication)
        else { return nil }
        return (home, binding.open)
    }

    /// Returns the publication that a slot should carry.
    private func carried(
        _ room: ReferenceRoom,
        _ viewer: ReferenceRoom.Person,
        _ slot: ReferenceRoom.Line
    ) -> (publication: RelayTarget, open: Bool)? {
        let subscription = room.subscriptions.first {
            $0.participant == viewer.id && $0.mids[slot.kind] == slot.mid
        }
        let stream = room.streams.first { $0.id == subscription?.stream }
        guard let subscription, let stream, stream.kinds.contains(slot.kind),
            let owner = room.person(stream.owner),
            let transport = owner.transports.first(where: { $0.name == stream.transport }),
            let line = transport.lines.first(where: {
                $0.kind == slot.kind && $0.isScreen == stream.isScreen
                    && room.isOnStage(owner, $0)
            }),
            let (worker, id) = transports["\(room.name) \(owner.id) \(transport.name)"],
            let publication = workers[worker].transports[id]?.publications
                .first(where: { $0.mid == line.mid })
        else { return nil }
        let home = RelayTarget(worker: worker, publication: publication.id)
        return (home, room.isOpen(subscription, slot.kind))
    }
}
