import Contract
package import RTP
import Rooms
package import WorkerInterface

extension ControlPlane {
    /// Processes an event of a worker.
    package mutating func receive(_ event: WorkerEvent, from worker: Int, at now: Instant) {
        setTime(now)
        if takeGuestEvent(event, from: worker, at: now) { return }
        switch event {
        case .fenced(let epoch, let passed, let packets):
            fenced(epoch, by: worker, at: passed, packets)
        case .statistics(let token, let statistics):
            collect(statistics, token, from: worker)
        case .transport(let id, let what):
            rooms.noteTransportChange()
            let place = Room.TransportLocation(worker: worker, id: id)
            take(.transport(place, what), of: .transport(worker: worker, id), at: now)
        case .closed(let id, let quality):
            let resource = Room.WorkerResource.transport(worker: worker, id)
            guard rooms.owners[resource] != nil else { break }
            operations.note(quality, of: Room.TransportLocation(worker: worker, id: id))
        case .started(_, let subscription):
            take(
                .started(subscription: subscription),
                of: .subscription(subscription),
                at: now
            )
        case .layerChanged(let slot, let subscription, let from, let to):
            take(
                .layerChanged(
                    subscription: subscription,
                    worker: worker,
                    slot,
                    from: from,
                    to: to
                ),
                of: .subscription(subscription),
                at: now
            )
        case .tap(let notice): take(notice, at: now)
        case .link: break
        case .layers(let id, let codec, let layers):
            take(
                .layers(worker: worker, id, codec: codec, layers),
                of: .publication(worker: worker, id),
                at: now
            )
        case .videoHeld(let slot, let subscription, let reason):
            take(
                .videoHeld(subscription: subscription, worker: worker, slot, reason),
                of: .subscription(subscription),
                at: now
            )
        case .layersWanted(let id, let home, let mask):
            let mirror = RelayTarget(worker: worker, publication: id)
            let home = origin(of: mirror, home) ?? mirror
            take(
                .layersWanted(worker: worker, home: home, mask),
                of: .publication(worker: home.worker, home.publication),
                at: now
            )
        case .pressure(let pressure, let transports):
            take(pressure, transports: transports, of: worker)
        case .explained(let token, let explanation):
            explained(explanation, token)
        case .speech(let id, let what):
            take(
                .speech(worker: worker, id, what),
                of: .publication(worker: worker, id),
                at: now
            )
        }
    }

    /// Gives a notice to the room that owns the worker-side object it is about.
    mutating func take(
        _ notice: Room.Notice,
        of resource: Room.WorkerResource,
        at now: Instant
    ) {
        // A worker may report on a removed object until it has passed the fence.
        guard let name = rooms.owners[resource],
            let change = rooms.entries[name]?.room.take(notice, &shared)
        else { return }
        rooms.noteDeadline(of: name)
        guard !change.announcements.isEmpty || !change.commands.isEmpty else { return }
        for case .connection(let participant, _, .disconnected(let reason)) in change
            .announcements.map(\.news)
        {
            output.append(
                .log(
                    .info,
                    "transport ended",
                    [("room", name), ("participant", participant), ("reason", reason.rawValue)]
                )
            )
        }
        conclude(Room.Outcome(change: change), in: name, at: now)
    }
}
