import JSON
package import RTP
import Rooms
import WorkerInterface

// Participants of other homes at this node: their commands and events.
extension ControlPlane {
    /// Takes a message of another home, in its life `boot`: commands for a worker of this node, or
    /// what a new home has to say of guests of a lost one.
    ///
    /// A message that is malformed or beyond the limits is refused: the home hears nothing, and
    /// gives up.
    package mutating func receivePlaceCommands(
        _ bytes: [UInt8],
        from home: String,
        _ boot: String,
        at now: Instant
    ) {
        if let message = JSON.sent(PlaceCommands.self, bytes) {
            execute(message, of: home, boot, at: now)
        } else if places != nil, let question = JSON.sent(AdoptionQuestion.self, bytes) {
            answer(question, of: home, at: now)
        } else if let order = JSON.sent(AdoptionOrder.self, bytes),
            (0..<setup.workers).contains(order.worker)
        {
            adopt(order, for: home, boot, at: now)
        } else if let end = JSON.sent(AdoptionEnd.self, bytes) {
            self.end(end, of: home, at: now)
        } else {
            refuseCommands(of: home)
        }
    }

    private mutating func refuseCommands(of home: String) {
        let fields = [("node", home)]
        output.append(.log(.warning, "unknown commands of a node", fields))
    }

    private mutating func execute(
        _ message: PlaceCommands,
        of home: String,
        _ boot: String,
        at now: Instant
    ) {
        guard var places, (0..<setup.workers).contains(message.worker),
            message.commands.allSatisfy(\.isValid),
            let lease = places.guests.homes[home]?.lease ?? places.guests.takeLease()
        else { return refuseCommands(of: home) }
        self.places = nil
        var work = GuestWork(
            home: home,
            boot,
            worker: message.worker,
            own: setup.node ?? "",
            workers: setup.workers,
            at: now
        )
        if places.guests.homes[home] == nil {
            places.guests.homes[home] = Guests.Home(lease: lease, boot: boot)
            work.routed.link.append(.link(.hold(home: home, lease: lease)))
        }
        let known = places.guests.homes[home]?.workers[message.worker]
        places.guests.homes[home]?.workers[message.worker] =
            known ?? GuestWorker(place: message.place)
        for command in message.commands {
            if case .configure(let id, _) = command,
                places.guests.homes[home]?.workers[message.worker]?.transports[their: id] == nil,
                refusesTransport(of: home)
            {
                work.refuse(id)
            } else {
                work.execute(command, &places, &shared.identifiers)
            }
        }
        post(&work, &places)
        self.places = places
        tellHome(home, message.place, work.events, at: now)
        if work.lacksMedia { tellHearing() }
    }

    /// Whether this node has no memory, or no worker with time, for a home's new transport.
    ///
    /// The home knows neither of another node; without memory the system would end all calls here.
    private mutating func refusesTransport(of home: String) -> Bool {
        do throws(CallError) {
            try shared.refuseTransport()
            return false
        } catch {
            let fields = [("home", home), ("reason", error.message)]
            output.append(.log(.warning, "transport of another home refused", fields))
            return true
        }
    }

    mutating func post(_ work: inout GuestWork, _ places: inout Places) {
        var waiting: Set<Int> = [work.worker]
        if !work.routed.link.isEmpty { waiting.insert(linkThread) }
        var fences: [WorkerCommand] = []
        // A part of a long message may have none. Handles are freed behind one of nobody's then:
        // the home must not hear of a fence that it does not await.
        let isOwn = work.fences.isEmpty && !work.routed.freed.isEmpty
        for epoch in isOwn ? [0] : work.fences {
            let fence = GuestFence(
                home: isOwn ? "" : work.home,
                worker: work.worker,
                epoch: epoch,
                waiting: waiting,
                freed: work.routed.freed
            )
            work.routed.freed = []
            fences.append(.fence(epoch: places.guests.add(fence)))
        }
        if !work.routed.link.isEmpty {
            output.append(.commands(worker: linkThread, work.routed.link + fences))
        }
        output.append(.commands(worker: work.worker, work.routed.worker + fences))
    }

    mutating func tellHome(
        _ home: String,
        _ place: Int,
        _ events: [RemoteEvent],
        at now: Instant
    ) {
        guard !events.isEmpty else { return }
        let message = PlaceEvents(place: place, clock: now, events: events).encoded()
        if !message.isWhole {
            let fields = [("home", home), ("limit", "\(PlaceEvents.byteLimit) bytes")]
            output.append(.log(.warning, "figures left out", fields))
        }
        output.append(.place(node: home, asHome: false, message.bytes))
    }

    /// Ends all participants of another home at this node.
    package mutating func endGuests(of home: String, at now: Instant) {
        guard let known = places?.guests.homes.removeValue(forKey: home) else { return }
        places?.guests.noteAll(of: FormerHome(node: home, boot: known.boot))
        end(known, as: home)
        places?.guests.disownFences(of: home)
        output.append(.commands(worker: linkThread, [.link(.hold(home: home, lease: nil))]))
    }

    /// Ends all that a home has here; `name` is one that no home has meanwhile.
    mutating func end(_ home: Guests.Home, as name: String) {
        guard var places else { return }
        self.places = nil
        places.guests.homes[name] = home
        for (worker, guests) in home.workers.sorted(by: { $0.key < $1.key }) {
            var work = GuestWork(
                home: name,
                home.boot,
                worker: worker,
                own: setup.node ?? "",
                workers: setup.workers,
                at: shared.now
            )
            for slot in guests.objects.values.flatMap(\.slots) {
                work.execute(.bind(slot, nil), &places, &shared.identifiers)
            }
            for transport in guests.objects.keys {
                work.execute(.close(transport), &places, &shared.identifiers)
            }
            // Only now does no slot carry them.
            for mirror in guests.mirrors.keys {
                work.execute(.unmirror(mirror), &places, &shared.identifiers)
            }
            work.freeReserved(&places)
            work.fences = [0]
            post(&work, &places)
        }
        places.guests.homes[name] = nil
        self.places = places
    }

    /// Takes a worker's event if it is about a guest; returns whether it was.
    mutating func takeGuestEvent(_ event: WorkerEvent, from worker: Int, at now: Instant) -> Bool {
        guard places != nil else { return false }
        switch event {
        case .fenced(let epoch, let passed, let packets):
            if noteDenial(epoch, at: passed) { return true }
            guard epoch >= Guests.firstNumber else { return false }
            guard let fence = places?.guests.pass(epoch, by: worker, packets) else { return true }
            for resource in fence.freed {
                release(resource)
                guard resource.worker == fence.worker else { continue }
                places?.guests.forget(resource, in: fence.worker)
            }
            guard let place = places?.guests.homes[fence.home]?.workers[fence.worker]?.place else {
                return true
            }
            let event = RemoteEvent.fenced(
                epoch: fence.epoch,
                at: passed,
                packets: fence.packets
            )
            tellHome(fence.home, place, [event], at: now)
            return true
        case .explained(let token, let explanation):
            guard let (home, token) = places?.guests.take(token) else { return false }
            tell(home, worker, .explained(token: token, explanation), at: now)
            return true
        case .statistics(let token, let statistics):
            guard let (home, token) = places?.guests.take(token) else { return false }
            let event = self.statistics(statistics, token, of: home, worker)
            tell(home, worker, event, at: now)
            return true
        case .transport, .closed, .started, .layerChanged, .layers, .videoHeld, .layersWanted,
            .speech:
            noteWants(event, worker)
            if let (home, told) = homeToTell(of: event, worker) {
                places?.guests.homes[home]?.workers[worker]?.facts.note(event)
                tell(home, worker, told, at: now)
                return true
            }
            guard let former = lostHome(of: event, worker) else { return false }
            places?.guests.lost[former]?.workers[worker]?.facts.note(event)
            return true
        case .link(.media(let node, let isAlive)):
            places?.hearing.note(node, isHeard: isAlive, at: now)
            tellHearing()
            let fields = [("node", node), ("media", isAlive ? "up" : "down")]
            output.append(.log(.info, "link media", fields))
            return true
        case .pressure, .tap: return false
        }
    }

    /// Returns the home of the guest that an event is about, and what to tell it.
    private func homeToTell(
        of event: WorkerEvent,
        _ worker: Int
    ) -> (home: String, told: RemoteEvent)? {
        for (home, guests) in places?.guests.homes ?? [:] {
            guard let told = guests.workers[worker]?.translated(event, places?.routes, worker)
            else { continue }
            return (home, told)
        }
        return nil
    }

    private func lostHome(of event: WorkerEvent, _ worker: Int) -> FormerHome? {
        places?.guests.lost.first { _, guests in
            guests.workers[worker]?.translated(event, places?.routes, worker) != nil
        }?
        .key
    }

    private mutating func tell(
        _ home: String,
        _ worker: Int,
        _ event: RemoteEvent,
        at now: Instant
    ) {
        guard let place = places?.guests.homes[home]?.workers[worker]?.place else { return }
        tellHome(home, place, [event], at: now)
    }

    /// Passes the wants of a mirror on to the node that its media comes from.
    private mutating func noteWants(_ event: WorkerEvent, _ worker: Int) {
        guard case .layersWanted(let id, _, let mask) = event else { return }
        var routed = RoutedCommands()
        places?.routes.want(mask, of: RelayTarget(worker: worker, publication: id), &routed)
        if !routed.link.isEmpty { output.append(.commands(worker: linkThread, routed.link)) }
    }

    /// Returns the home's name of a publication that a mirror here is of.
    func origin(of mirror: RelayTarget, _ told: RelayTarget?) -> RelayTarget? {
        places?.routes.name(of: mirror)?.target ?? told
    }

    private func statistics(
        _ statistics: WorkerStatistics,
        _ token: UInt64,
        of home: String,
        _ worker: Int
    ) -> RemoteEvent {
        guard let known = places?.guests.homes[home]?.workers[worker] else {
            return .statistics(token: token, [], [], [])
        }
        return .statistics(
            token: token,
            statistics.transports.compactMap { entry in
                var entry = entry
                guard let id = known.transports[our: entry.id] else { return nil }
                entry.id = id
                return entry
            },
            statistics.publications.compactMap { entry in
                var entry = entry
                guard let id = known.publications[our: entry.id] else { return nil }
                entry.id = id
                return entry
            },
            statistics.slots.compactMap { entry in
                var entry = entry
                guard let id = known.slots[our: entry.id] else { return nil }
                entry.id = id
                return entry
            }
        )
    }
}

extension Room.WorkerResource {
    /// Worker that has the object; `nil` for one that is in none.
    fileprivate var worker: Int? {
        switch self {
        case .transport(let worker, _), .publication(let worker, _), .slot(let worker, _): worker
        case .subscription, .tap: nil
        }
    }
}

extension GuestWorker {
    /// Returns an event with the home's handles; `nil` if it is not about its objects.
    func translated(
        _ event: WorkerEvent,
        _ routes: MediaRoutes?,
        _ worker: Int
    ) -> RemoteEvent? {
        switch event {
        case .transport(let id, let change):
            transports[our: id].map { .transport($0, change) }
        case .closed(let id, let quality): transports[our: id].map { .closed($0, quality) }
        case .started(let id, let subscription):
            slots[our: id].map { .started($0, subscription: subscription) }
        case .layerChanged(let id, let subscription, let from, let to):
            slots[our: id].map {
                .layerChanged($0, subscription: subscription, from: from, to: to)
            }
        case .layers(let id, let codec, let layers):
            publications[our: id].map { .layers($0, codec: codec, layers) }
        case .videoHeld(let id, let subscription, let reason):
            slots[our: id].map { .videoHeld($0, subscription: subscription, reason) }
        case .layersWanted(let id, _, let mask):
            publications[our: id].map { their in
                let target = RelayTarget(worker: worker, publication: id)
                let home = routes?.name(of: target)?.target ?? homes[their]
                return .layersWanted(their, home: home, mask)
            }
        case .speech(let id, let change): publications[our: id].map { .speech($0, change) }
        case .fenced, .explained, .statistics, .pressure, .tap, .link: nil
        }
    }
}
