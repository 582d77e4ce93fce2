import RTP
import Rooms
import WorkerInterface

/// Execution of a batch of another home's commands for one worker here.
struct GuestWork {
    let home: String
    /// Life of the home.
    let boot: String
    let worker: Int
    /// This node's name, and the number of its workers.
    let own: String
    let workers: Int
    let now: Instant
    var routed = RoutedCommands()
    var events: [RemoteEvent] = []
    /// Fences behind the commands, by the home's numbers.
    var fences: [UInt64] = []
    /// Whether a mirror was made of media of a node that is not heard.
    var lacksMedia = false

    init(
        home: String,
        _ boot: String,
        worker: Int,
        own: String,
        workers: Int,
        at now: Instant
    ) {
        self.home = home
        self.boot = boot
        self.worker = worker
        self.own = own
        self.workers = workers
        self.now = now
    }

    mutating func execute(
        _ command: RemoteCommand,
        _ places: inout Places,
        _ pools: inout [WorkerIdentifiers]
    ) {
        guard var guests = places.guests.homes[home]?.workers[worker] else { return }
        defer { places.guests.homes[home]?.workers[worker] = guests }
        switch command {
        case .configure(let id, let configuration):
            configure(id, configuration, &guests, &places, &pools)
        case .keep(let id, let room, let negotiation):
            guard guests.objects[id] != nil else { break }
            guests.objects[id]?.room = room
            guests.objects[id]?.negotiation = negotiation
        case .resume(let id, let wasConnected):
            resume(id, wasConnected: wasConnected, &guests, places)
        case .close(let id): close(id, &guests, &places)
        case .gate(let id, let open):
            guard let our = guests.publications[their: id] else { break }
            places.routes.gate(target(our), open: open, &routed)
            routed.worker.append(.gate(our, open: open))
        case .bind(let id, let binding):
            guard let slot = guests.slots[their: id] else { break }
            routed.worker.append(.bind(slot, binding.flatMap { translated($0, guests) }))
        case .limit(let id, let cap):
            guard let our = guests.publications[their: id] else { break }
            routed.worker.append(.limit(our, cap))
        case .feature(let id, let isFeatured):
            guard let our = guests.publications[their: id] else { break }
            routed.worker.append(.feature(our, isFeatured))
        case .mirror(let mirror, let place, let parent):
            self.mirror(mirror, at: place, via: parent, &guests, &places, &pools)
        case .unmirror(let id):
            guard let our = guests.publications[their: id],
                guests.mirrors.removeValue(forKey: id) != nil
            else { break }
            guests.homes[id] = nil
            places.routes.unmirror(target(our), &routed)
            routed.worker.append(.unmirror(our))
            routed.freed.append(.publication(worker: worker, our))
        case .relay(let id, let targets, let at):
            relay(id, targets, at, guests, &places, &pools)
        case .explain(let id, let token):
            guard let slot = guests.slots[their: id] else {
                events.append(.explained(token: token, nil))
                break
            }
            let ours = places.guests.add(token, of: home)
            routed.worker.append(.explain(slot, token: ours))
        case .reportTransports(let ids, let token):
            let ours = places.guests.add(token, of: home)
            let known = ids.compactMap { guests.transports[their: $0] }
            routed.worker.append(.reportTransports(known, token: ours))
        case .fence(let epoch): fences.append(epoch)
        }
    }

    /// Refuses a transport: the home ends it, and its client may try again.
    mutating func refuse(_ id: TransportID) {
        events.append(.transport(id, .disconnected(.timeout)))
    }

    private func target(_ publication: PublicationID) -> RelayTarget {
        RelayTarget(worker: worker, publication: publication)
    }

    private func translated(_ binding: Binding, _ guests: GuestWorker) -> Binding? {
        guard let our = guests.publications[their: binding.publication] else { return nil }
        var translated = binding
        translated.publication = our
        translated.from = local(binding.from)
        return translated
    }

    /// Returns the time from which a talker is to be heard: all that is held, as what a home says
    /// is a time of its own clock.
    private func local(_ start: Instant?) -> Instant? {
        start.map { _ in now.advanced(milliseconds: -MediaRoutes.heldMilliseconds) }
    }

    private mutating func configure(
        _ id: TransportID,
        _ configuration: TransportConfiguration,
        _ guests: inout GuestWorker,
        _ places: inout Places,
        _ pools: inout [WorkerIdentifiers]
    ) {
        let wanted = GuestWorker.Objects(
            publications: Set(configuration.publications.map(\.id)),
            slots: Set(configuration.slots.map(\.id))
        )
        let new = wanted.publications.filter {
            guests.publications[their: $0] == nil || guests.reserved.contains($0)
        }
        guard hasRoom(for: id, wanted, guests, pools) else { return refuse(id) }
        if guests.transports[their: id] == nil, let our = pools[worker].transports.allocate() {
            guests.transports.add(id, as: our)
        }
        guests.reserved.subtract(new)
        for publication in new where guests.publications[their: publication] == nil {
            guard let our = pools[worker].publications.allocate() else { break }
            guests.publications.add(publication, as: our)
        }
        for slot in wanted.slots where guests.slots[their: slot] == nil {
            guard let our = pools[worker].slots.allocate() else { break }
            guests.slots.add(slot, as: our)
        }
        free(guests.objects[id], except: wanted, guests, &places)
        guests.objects[id, default: wanted].publications = wanted.publications
        guests.objects[id]?.slots = wanted.slots
        var ours = configuration
        for index in ours.publications.indices {
            guard let our = guests.publications[their: ours.publications[index].id] else { return }
            ours.publications[index].id = our
        }
        for index in ours.slots.indices {
            guard let our = guests.slots[their: ours.slots[index].id] else { return }
            ours.slots[index].id = our
        }
        guard let transport = guests.transports[their: id] else { return }
        places.routes.configure(ours.publications, in: worker, &routed)
        routed.worker.append(.configure(transport, ours))
        for publication in new {
            hold(guests.publications[their: publication], places)
        }
        note(id, &places)
    }

    /// Continues a transport that this process has kept from the one before it.
    private mutating func resume(
        _ id: TransportID,
        wasConnected: Bool,
        _ guests: inout GuestWorker,
        _ places: Places
    ) {
        guard let objects = guests.objects[id], objects.isSaved,
            let our = guests.transports[their: id]
        else { return }
        guests.objects[id]?.isSaved = false
        routed.worker.append(.resume(our, wasConnected: wasConnected))
        for publication in objects.publications {
            hold(guests.publications[their: publication], places)
        }
    }

    /// Lets the next process know what has become of a transport.
    private func note(_ id: TransportID, _ places: inout Places) {
        let former = FormerHome(node: home, boot: boot)
        places.guests.note(SavedGuest.Key(home: former, worker: worker, transport: id))
    }

    private func hasRoom(
        for id: TransportID,
        _ wanted: GuestWorker.Objects,
        _ guests: GuestWorker,
        _ pools: [WorkerIdentifiers]
    ) -> Bool {
        let isNew = guests.transports[their: id] == nil
        let publications = wanted.publications.count { guests.publications[their: $0] == nil }
        let slots = wanted.slots.count { guests.slots[their: $0] == nil }
        return pools[worker].transports.available >= (isNew ? 1 : 0)
            && pools[worker].publications.available >= publications
            && pools[worker].slots.available >= slots
    }

    /// Lets a publication's gate be open under the home's lease only.
    private mutating func hold(_ publication: PublicationID?, _ places: Places) {
        guard let publication, let lease = places.guests.homes[home]?.lease else { return }
        routed.worker.append(.lease(publication, of: lease))
    }

    private mutating func free(
        _ objects: GuestWorker.Objects?,
        except kept: GuestWorker.Objects,
        _ guests: GuestWorker,
        _ places: inout Places
    ) {
        guard let objects else { return }
        for id in objects.publications.subtracting(kept.publications) {
            guard let our = guests.publications[their: id] else { continue }
            places.routes.forget(target(our), &routed)
            routed.freed.append(.publication(worker: worker, our))
        }
        for id in objects.slots.subtracting(kept.slots) {
            guard let our = guests.slots[their: id] else { continue }
            routed.freed.append(.slot(worker: worker, our))
        }
    }

    private mutating func close(
        _ id: TransportID,
        _ guests: inout GuestWorker,
        _ places: inout Places
    ) {
        guard let our = guests.transports[their: id] else { return }
        free(guests.objects.removeValue(forKey: id), except: .init(), guests, &places)
        routed.worker.append(.close(our))
        routed.freed.append(.transport(worker: worker, our))
        note(id, &places)
    }

    private mutating func mirror(
        _ mirror: Mirror,
        at place: RemotePlace,
        via parent: String?,
        _ guests: inout GuestWorker,
        _ places: inout Places,
        _ pools: inout [WorkerIdentifiers]
    ) {
        let id = mirror.configuration.id
        let isReserved = guests.reserved.remove(id) != nil
        let isNew = isReserved || guests.publications[their: id] == nil
        if isNew {
            if !isReserved {
                guard let our = pools[worker].publications.allocate() else { return }
                guests.publications.add(id, as: our)
            }
            guests.mirrors[id] = mirror.home
            places.guests.hasNewMirrors = true
        }
        guard let our = guests.publications[their: id], guests.mirrors[id] != nil else { return }
        guests.mirrors[id] = mirror.home
        var made = mirror
        made.configuration.id = our
        if place.node == own {
            made.from = local(mirror.from)
            guard let origin = origin(mirror.home, at: place, guests, &places, &pools) else {
                return
            }
            made.home = origin
            guests.homes[id] = mirror.home
            routed.worker.append(.mirror(made))
        } else {
            let routedMirror = places.routes.mirror(
                made,
                in: worker,
                of: StreamName(home: "\(home)/\(boot)", target: mirror.home),
                at: place.node,
                via: parent,
                &pools,
                &routed
            )
            places.hearing.expect(place.node, at: now)
            lacksMedia = lacksMedia || !places.hearing.hears(place.node)
            guard let routedMirror else { return }
            routed.worker.append(.mirror(routedMirror))
        }
        if isNew { hold(our, places) }
    }

    /// Returns the publication of a worker of this node that the home names.
    ///
    /// The home tells one worker after the other: what it has yet to tell another one has its
    /// handle from now on.
    private func origin(
        _ target: RelayTarget,
        at place: RemotePlace,
        _ guests: GuestWorker,
        _ places: inout Places,
        _ pools: inout [WorkerIdentifiers]
    ) -> RelayTarget? {
        let id = target.publication
        guard place.worker != worker else {
            return guests.publications[their: id].map {
                RelayTarget(worker: worker, publication: $0)
            }
        }
        guard (0..<workers).contains(place.worker) else { return nil }
        var other =
            places.guests.homes[home]?.workers[place.worker] ?? GuestWorker(place: target.worker)
        if other.publications[their: id] == nil {
            guard let our = pools[place.worker].publications.allocate() else { return nil }
            other.publications.add(id, as: our)
            other.reserved.insert(id)
            places.guests.homes[home]?.workers[place.worker] = other
        }
        return other.publications[their: id].map {
            RelayTarget(worker: place.worker, publication: $0)
        }
    }

    /// Frees the handles of what was never told.
    mutating func freeReserved(_ places: inout Places) {
        let guests = places.guests.homes[home]?.workers[worker]
        for id in guests?.reserved ?? [] {
            guard let our = guests?.publications[their: id] else { continue }
            routed.freed.append(.publication(worker: worker, our))
        }
        places.guests.homes[home]?.workers[worker]?.reserved = []
    }

    private mutating func relay(
        _ id: PublicationID,
        _ targets: [RelayTarget],
        _ at: [RemotePlace],
        _ guests: GuestWorker,
        _ places: inout Places,
        _ pools: inout [WorkerIdentifiers]
    ) {
        guard let our = guests.publications[their: id] else { return }
        var found: [RoutedTarget] = []
        for (target, place) in zip(targets, at) {
            if place.node != own {
                found.append(.at(place.node))
            } else if let local = origin(target, at: place, guests, &places, &pools) {
                found.append(.here(local))
            }
        }
        places.routes.relay(
            self.target(our),
            as: StreamName(
                home: "\(home)/\(boot)",
                target: RelayTarget(worker: guests.place, publication: id)
            ),
            to: found,
            at: now,
            &pools,
            &routed
        )
    }
}
