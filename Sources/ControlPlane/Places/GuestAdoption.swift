import JSON
package import RTP
import Rooms
import WorkerInterface

// At a node with participants of a lost home: they wait for another home to go on with them.

extension Guests.Home {
    /// Returns a transport of a room at a place, as the former home counted it, if it goes on.
    func kept(
        _ transport: Room.TransportLocation,
        of room: String
    ) -> (worker: Int, negotiation: [UInt8])? {
        for (worker, guests) in workers where guests.place == transport.worker {
            guard let objects = guests.objects[transport.id], objects.room == room else { continue }
            return objects.negotiation.map { (worker, $0) }
        }
        return nil
    }

    /// Mirrors of a place, in the former home's words.
    func mirrors(at place: Int) -> [AdoptionAnswer.Mirror] {
        workers.values.filter { $0.place == place }
            .flatMap { guests in
                guests.mirrors.map { id, home in
                    AdoptionAnswer.Mirror(place: place, id: id, home: home)
                }
            }
    }
}

extension ControlPlane {
    /// Keeps the guests of a home whose life is over until another node goes on with its rooms, for
    /// 15 s; they are sent media as long as the lease of that home goes on.
    ///
    /// `isBack`: its process has begun again within its lease, so it goes on with them itself.
    package mutating func orphanGuests(
        of home: String,
        _ boot: String,
        isBack: Bool = false,
        at now: Instant
    ) {
        guard var known = places?.guests.homes.removeValue(forKey: home) else { return }
        places?.guests.disownFences(of: home)
        known.isBack = isBack
        places?.guests.noteAll(of: FormerHome(node: home, boot: known.boot))
        known.until = now.advanced(milliseconds: Self.orphanMilliseconds)
        let former = FormerHome(node: home, boot: boot)
        // Another life of the home says nothing of these guests.
        output.append(.commands(worker: linkThread, [.link(.hold(home: home, lease: nil))]))
        endOrphans(of: former)
        places?.guests.lost[former] = known
    }

    /// Ends what nobody has gone on with.
    mutating func expireOrphans(at now: Instant) {
        for (former, home) in places?.guests.lost ?? [:]
        where home.until.map({ $0 <= now }) == true {
            endOrphans(of: former)
        }
    }

    private mutating func endOrphans(of former: FormerHome) {
        guard let home = places?.guests.lost.removeValue(forKey: former) else { return }
        places?.guests.noteAll(of: former)
        if home.isSaved { forget(home) } else { end(home, as: former.key) }
    }

    /// Answers which transports of a former home go on here.
    mutating func answer(_ question: AdoptionQuestion, of home: String, at now: Instant) {
        keepOwn(question, at: now)
        let former = places?.guests.formerHome(question.former)
        let kept = question.asked.prefix(AdoptionAnswer.limit).compactMap { transport in
            former?.kept(transport, of: question.room).map { worker, negotiation in
                AdoptionAnswer.Kept(
                    transport: transport,
                    worker: worker,
                    negotiation: negotiation
                )
            }
        }
        let mirrors = Set(kept.map(\.transport.worker)).flatMap { former?.mirrors(at: $0) ?? [] }
        let answer = AdoptionAnswer(room: question.room, kept: kept, mirrors: mirrors)
        for part in answer.parts { output.append(.place(node: home, asHome: false, part)) }
    }

    /// Keeps the transports here of a room that is about to go on here.
    mutating func keepOwn(_ question: AdoptionQuestion, at now: Instant) {
        places?.guests.withFormerHome(question.former) { $0.promise(question, at: now) }
    }

    /// Goes on with guests of a former home for another one; that tells their state next.
    mutating func adopt(_ order: AdoptionOrder, for home: String, _ boot: String, at now: Instant) {
        // One that was kept from the process before has its lease still.
        let kept = places?.guests.lost[FormerHome(node: home, boot: boot)].flatMap {
            $0.isSaved ? $0.lease : nil
        }
        guard
            let lease = places?.guests.homes[home]?.lease ?? kept ?? places?.guests.takeLease()
        else {
            let events = order.transports.map {
                RemoteEvent.transport($0.name.new, .disconnected(.timeout))
            }
            return tellHome(home, order.place, events, at: now)
        }
        if places?.guests.homes[home] == nil {
            places?.guests.homes[home] = Guests.Home(lease: lease, boot: boot)
            output.append(
                .commands(worker: linkThread, [.link(.hold(home: home, lease: lease))])
            )
        }
        let taken =
            isLost(order.former, to: home)
            ? nil : places?.guests.withFormerHome(order.former) { $0.take(order) } ?? nil
        var heirs =
            places?.guests.homes[home]?.workers[order.worker] ?? GuestWorker(place: order.place)
        if let taken { heirs.add(taken, order) }
        places?.guests.homes[home]?.workers[order.worker] = heirs
        let heir = FormerHome(node: home, boot: boot)
        for name in order.transports.map(\.name) {
            places?.guests.note(
                SavedGuest.Key(home: heir, worker: order.worker, transport: name.new)
            )
        }
        if heir != order.former { places?.guests.noteAll(of: order.former) }
        // One that was on its way to the process before is made by the commands that follow.
        let isMade = { (transport: AdoptionOrder.Transport) in
            order.isRebuilt == true && !transport.isConnected && !transport.isReconnecting
        }
        let gone =
            order.transports
            .filter { heirs.transports[their: $0.name.new] == nil && !isMade($0) }
            .map { RemoteEvent.transport($0.name.new, .disconnected(.timeout)) }
        tellHome(home, order.place, gone, at: now)
    }

    /// Whether a home comes back too late for its own guests: another one goes on with its rooms.
    private func isLost(_ former: FormerHome, to home: String) -> Bool {
        guard former.node == home, let lost = places?.guests.lost[former] else { return false }
        return !lost.isBack
    }

    /// Ends what another home has not gone on with, lets its leases count, and tells it what it has
    /// not heard.
    mutating func end(_ adoption: AdoptionEnd, of home: String, at now: Instant) {
        if !isLost(adoption.former, to: home) { endRest(of: adoption, by: home, at: now) }
        places?.guests.homes[home]?.settle(adoption)
        if let worker = adoption.worker { endUnresumed(of: home, in: worker, at: now) }
        guard let known = places?.guests.homes[home], let worker = adoption.worker,
            let heirs = known.workers[worker]
        else { return }
        places?.guests.homes[home]?.workers[worker]?.adopted = GuestWorker.Adopted()
        settle(heirs.adopted, of: adoption.former, in: worker, under: known.lease)
        let events = heirs.adopted.facts.compactMap {
            heirs.translated($0, places?.routes, worker)
        }
        tellHome(home, heirs.place, events, at: now)
    }

    /// Frees what the new home does not know, and lets its lease count, if it has one here.
    private mutating func settle(
        _ adopted: GuestWorker.Adopted,
        of former: FormerHome,
        in worker: Int,
        under lease: Int?
    ) {
        guard var places else { return }
        self.places = nil
        var work = GuestWork(
            home: former.key,
            former.boot,
            worker: worker,
            own: "",
            workers: setup.workers,
            at: shared.now
        )
        for our in adopted.unknown.publications {
            let target = RelayTarget(worker: worker, publication: our)
            places.routes.forget(target, &work.routed)
            work.routed.freed.append(.publication(worker: worker, our))
        }
        work.routed.freed += adopted.unknown.slots.map { .slot(worker: worker, $0) }
        work.routed.worker += adopted.leases.map { .lease($0, of: lease) }
        work.fences = [0]
        post(&work, &places)
        self.places = places
    }

    /// Goes on with guests of a former home whose room goes on at this node.
    mutating func adoptHere(_ order: AdoptionOrder, _ heirs: inout [Int: GuestWorker]) {
        guard let taken = places?.guests.withFormerHome(order.former, { $0.take(order) }) ?? nil
        else { return }
        places?.guests.noteAll(of: order.former)
        // The new names are those that they have here.
        heirs[order.worker, default: GuestWorker(place: order.worker)].add(taken, order)
    }

    /// Ends what the room has not gone on with at this node, and lets no lease count any longer.
    mutating func endAdoptionHere(
        _ adoption: AdoptionEnd,
        _ heirs: GuestWorker?,
        at now: Instant
    ) {
        endRest(of: adoption, by: setup.node ?? "", at: now)
        guard let heirs, let worker = adoption.worker else { return }
        settle(heirs.adopted, of: adoption.former, in: worker, under: nil)
        for fact in heirs.adopted.facts { receive(fact, from: worker, at: now) }
    }

    /// Ends the transports of a room that are left of a former home.
    ///
    /// A home that has let the room go ends those alone that it has not taken back, and that no
    /// other home is about to take over.
    private mutating func endRest(
        of adoption: AdoptionEnd,
        by home: String,
        at now: Instant
    ) {
        let isFormer = home == adoption.former.node
        // A home that has begun again names all that goes on before its first end.
        if isFormer, places?.guests.lost[adoption.former] != nil {
            return endOrphans(of: adoption.former)
        }
        let past = now.advanced(milliseconds: -Self.promiseMilliseconds)
        let rest = places?.guests.withFormerHome(adoption.former) { former in
            former.takeRest(adoption) { objects in
                objects.isAdopted || isFormer && objects.promised.map { $0 > past } ?? false
            }
        }
        if places?.guests.lost[adoption.former]?.isEmpty == true {
            places?.guests.lost[adoption.former] = nil
        }
        guard let rest else { return }
        places?.guests.noteAll(of: adoption.former)
        var home = Guests.Home(lease: 0, boot: adoption.former.boot)
        home.workers = rest
        end(home, as: adoption.former.key)
    }

    /// Time for which guests of a lost home are kept.
    static let orphanMilliseconds: Int64 = 15_000
    /// Time for which a transport is kept that the next home was told of, though the former one
    /// lets go of it: more than that waits for other nodes (`Adoption.patienceMilliseconds`).
    private static let promiseMilliseconds: Int64 = 10_000
}

extension FormerHome {
    /// Name of what is nobody's any longer: no node has one with a space.
    fileprivate var key: String { "\(node) \(boot)" }
}

extension Guests.Home {
    /// Whether it has nothing here.
    fileprivate var isEmpty: Bool {
        workers.values.allSatisfy {
            $0.transports.isEmpty && $0.publications.isEmpty && $0.slots.isEmpty
        }
    }

    /// Takes out what an order names.
    fileprivate mutating func take(_ order: AdoptionOrder) -> GuestWorker? {
        guard workers[order.worker]?.place == order.formerPlace else { return nil }
        return workers[order.worker]?.take(order)
    }

    /// Takes out the transports of a room that are left, but for some.
    fileprivate mutating func takeRest(
        _ adoption: AdoptionEnd,
        except isSpared: (GuestWorker.Objects) -> Bool
    ) -> [Int: GuestWorker] {
        var rest: [Int: GuestWorker] = [:]
        for worker in Array(workers.keys)
        where workers[worker]?.place == adoption.formerPlace {
            rest[worker] = workers[worker]?.takeRest(of: adoption.room, except: isSpared)
        }
        return rest
    }

    /// Notes which transports the next home was told of.
    fileprivate mutating func promise(_ question: AdoptionQuestion, at now: Instant) {
        for transport in question.asked.prefix(AdoptionAnswer.limit) {
            for (worker, guests) in workers where guests.place == transport.worker {
                workers[worker]?.objects[transport.id]?.promised = now
            }
        }
    }

    /// Notes that the takeover of a room's transports in one worker is over.
    fileprivate mutating func settle(_ adoption: AdoptionEnd) {
        guard let worker = adoption.worker else { return }
        for (id, objects) in workers[worker]?.objects ?? [:]
        where objects.isAdopted && objects.room == adoption.room {
            workers[worker]?.objects[id]?.isAdopted = false
        }
    }
}

extension GuestWorker {
    /// Takes out what an order names, still under the former home's names.
    fileprivate mutating func take(_ order: AdoptionOrder) -> Self {
        var taken = take(order.transports.map(\.name.old))
        for name in order.publications {
            guard let home = mirrors.removeValue(forKey: name.old),
                let our = publications[their: name.old]
            else { continue }
            publications.remove(our: our)
            taken.publications.add(name.old, as: our)
            taken.mirrors[name.old] = home
            homes[name.old] = nil
        }
        taken.facts = facts
        return taken
    }

    /// Takes out transports with all that they have.
    private mutating func take(_ transports: [TransportID]) -> Self {
        var taken = Self(place: place)
        for id in transports {
            guard let our = self.transports[their: id], let known = objects.removeValue(forKey: id)
            else { continue }
            taken.add(id, known, from: self)
            self.transports.remove(our: our)
            for our in known.publications.compactMap({ publications[their: $0] }) {
                publications.remove(our: our)
            }
            for our in known.slots.compactMap({ slots[their: $0] }) { slots.remove(our: our) }
        }
        return taken
    }

    fileprivate mutating func takeRest(
        of room: String,
        except isSpared: (Objects) -> Bool
    ) -> Self? {
        let rest = objects.filter { $0.value.room == room && !isSpared($0.value) }.map(\.key)
        return rest.isEmpty ? nil : take(rest)
    }

    /// Adds what was taken out, under its new names.
    fileprivate mutating func add(_ taken: Self, _ order: AdoptionOrder) {
        var known = taken.facts
        var names: [PublicationID: PublicationID] = [:]
        for name in order.publications {
            guard let our = taken.publications[their: name.old] else { continue }
            names[name.old] = name.new
            publications.add(name.new, as: our)
            if let home = taken.mirrors[name.old] { mirrors[name.new] = home }
            adopted.leases.append(our)
            note(known.take(.layers(our), .speech(our), .wants(our)))
        }
        var slotNames: [SlotID: SlotID] = [:]
        for name in order.slots {
            guard let our = taken.slots[their: name.old] else { continue }
            slotNames[name.old] = name.new
            slots.add(name.new, as: our)
            note(known.take(.start(our), .hold(our)))
        }
        for transport in order.transports {
            let name = transport.name
            guard let our = taken.transports[their: name.old], let old = taken.objects[name.old]
            else { continue }
            transports.add(name.new, as: our)
            var new = old
            new.isAdopted = true
            new.promised = nil
            new.publications = Set(old.publications.compactMap { names[$0] })
            new.slots = Set(old.slots.compactMap { slotNames[$0] })
            objects[name.new] = new
            adopted.unknown.publications += old.publications.filter { names[$0] == nil }
                .compactMap { taken.publications[their: $0] }
            adopted.unknown.slots += old.slots.filter { slotNames[$0] == nil }
                .compactMap { taken.slots[their: $0] }
            let told = known.take(.transport(our))
            for fact in told { facts.note(fact) }
            adopted.facts += told.filter { !$0.isKnown(of: transport) }
        }
    }

    private mutating func note(_ told: [WorkerEvent]) {
        for fact in told { facts.note(fact) }
        adopted.facts += told
    }
}

extension WorkerEvent {
    /// Whether it says of a transport what the new home takes for true.
    fileprivate func isKnown(of transport: AdoptionOrder.Transport) -> Bool {
        switch self {
        case .transport(_, .connected), .transport(_, .reconnected): transport.isConnected
        case .transport(_, .reconnecting): transport.isReconnecting
        case .transport, .closed, .started, .layerChanged, .layers, .videoHeld, .layersWanted,
            .speech, .fenced, .explained, .statistics, .pressure, .tap, .link:
            false
        }
    }
}
