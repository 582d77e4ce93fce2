import JSON
import RTP
import Rooms
import WorkerInterface

// Participants of other homes' rooms at this node, whose process ends and begins again: their
// workers' state is saved with that of all others, and their homes know the rest.

/// Record of a transport of another home's room at this node: the names that its home and the
/// workers here have for it.
struct SavedGuest: Codable {
    struct Key: Hashable {
        var home: FormerHome
        var worker: Int
        /// In the home's words.
        var transport: TransportID

        /// Key of the record.
        var text: String {
            let name = "\(home.boot).\(worker).\(transport.generation).\(transport.index)"
            return RoomRecords.key(.guest, home.node, name)
        }
    }

    struct Name<Kind>: Codable {
        var their: Handle<Kind>
        var our: Handle<Kind>
    }

    var home: FormerHome
    var worker: Int
    /// Number that the home has given to the worker.
    var place: Int
    var transport: Name<HandleKind.Transport>
    var publications: [Name<HandleKind.Publication>]
    var slots: [Name<HandleKind.Slot>]
}

extension Guests {
    /// Notes that a transport's record may have to be saved, or removed.
    mutating func note(_ key: SavedGuest.Key) { unsaved.insert(key) }

    /// Notes that the same is so of all transports of a home.
    mutating func noteAll(of former: FormerHome) { unsaved.formUnion(saved[former] ?? []) }

    /// Homes whose participants this process has kept from the one before, while no worker has
    /// them; `nil` if there are none.
    var savedHomes: [FormerHome]? {
        let own = homes.filter(\.value.hasSaved).map { FormerHome(node: $0, boot: $1.boot) }
        let waiting = lost.filter(\.value.hasSaved).map(\.key) + own
        return waiting.isEmpty ? nil : waiting.sorted { $0.node < $1.node }
    }

    /// Returns the records that have changed since the last call.
    mutating func takeUnsaved() -> [SavedChange] {
        var changes: [SavedChange] = []
        for key in unsaved {
            let record = record(of: key)
            guard record != nil || saved[key.home]?.contains(key) == true else { continue }
            if record == nil {
                saved[key.home]?.remove(key)
                if saved[key.home]?.isEmpty == true { saved[key.home] = nil }
            } else {
                saved[key.home, default: []].insert(key)
            }
            changes.append(SavedChange(key: key.text, value: record.map(JSON.compact)))
        }
        unsaved = []
        return changes.sorted { $0.key < $1.key }
    }

    /// Returns the record of a transport; `nil` if the next process is not to go on with it.
    private func record(of key: SavedGuest.Key) -> SavedGuest? {
        // While a home goes on with them they are partly here, partly there.
        let own = homes[key.home.node].flatMap { $0.boot == key.home.boot ? $0 : nil }
        let former = lost[key.home].flatMap { $0.isBack ? $0 : nil }
        let known = [own, former].compactMap { $0?.workers[key.worker] }
            .first { $0.objects[key.transport] != nil }
        guard let guests = known, let objects = guests.objects[key.transport],
            let our = guests.transports[their: key.transport]
        else { return nil }
        return SavedGuest(
            home: key.home,
            worker: key.worker,
            place: guests.place,
            transport: SavedGuest.Name(their: key.transport, our: our),
            publications: names(of: objects.publications, in: guests.publications),
            slots: names(of: objects.slots, in: guests.slots)
        )
    }

    private func names<Kind>(
        of handles: Set<Handle<Kind>>,
        in known: GuestHandles<Kind>
    ) -> [SavedGuest.Name<Kind>] {
        handles.sorted { ($0.index, $0.generation) < ($1.index, $1.generation) }
            .compactMap { their in
                known[their: their].map { SavedGuest.Name(their: their, our: $0) }
            }
    }

    /// Adds a transport that the process before has saved; it waits for its home.
    fileprivate mutating func restore(_ guest: SavedGuest, until: Instant) {
        if lost[guest.home] == nil {
            guard let lease = takeLease() else { return }
            lost[guest.home] = Home(
                lease: lease,
                boot: guest.home.boot,
                until: until,
                isBack: true,
                isSaved: true
            )
        }
        var guests = lost[guest.home]?.workers[guest.worker] ?? GuestWorker(place: guest.place)
        guests.transports.add(guest.transport.their, as: guest.transport.our)
        for name in guest.publications { guests.publications.add(name.their, as: name.our) }
        for name in guest.slots { guests.slots.add(name.their, as: name.our) }
        guests.objects[guest.transport.their] = GuestWorker.Objects(
            publications: Set(guest.publications.map(\.their)),
            slots: Set(guest.slots.map(\.their)),
            isSaved: true
        )
        lost[guest.home]?.workers[guest.worker] = guests
        note(
            SavedGuest.Key(
                home: guest.home,
                worker: guest.worker,
                transport: guest.transport.their
            )
        )
    }
}

extension SavedGuest {
    /// Handles that are in use with it.
    fileprivate var handles: Room.Handles {
        var handles = Room.Handles()
        handles.transports = [transport.our]
        handles.publications = publications.map(\.our)
        handles.slots = slots.map(\.our)
        return handles
    }
}

extension Guests.Home {
    /// Whether some of its transports are kept from the process before, and in no worker.
    fileprivate var hasSaved: Bool {
        workers.values.contains { $0.objects.values.contains(where: \.isSaved) }
    }
}

extension Room.Handles {
    /// Whether these are possible, and none of them is in use.
    fileprivate func mayJoin(_ used: Self, _ pools: WorkerIdentifiers) -> Bool {
        Self.areFree(transports, used.transports, pools.transports.available)
            && Self.areFree(publications, used.publications, pools.publications.available)
            && Self.areFree(slots, used.slots, pools.slots.available)
    }

    private static func areFree<Kind>(
        _ handles: [Handle<Kind>],
        _ used: [Handle<Kind>],
        _ capacity: Int
    ) -> Bool {
        let taken = Set(used.map(\.index))
        return Set(handles.map(\.index)).count == handles.count
            && handles.allSatisfy { handle in
                handle.index < capacity && (1..<UInt32.max).contains(handle.generation)
                    && !taken.contains(handle.index)
            }
    }
}

extension ControlPlane {
    /// Participants of other homes' rooms here.
    package var guestTransports: Int { places?.guests.transportCount ?? 0 }

    /// Whether transports of other homes' rooms may still be resumed: their homes tell.
    package var awaitsHomes: Bool { places?.guests.savedHomes != nil }

    /// Keeps what the process before had of other homes' rooms, until those homes build it anew.
    ///
    /// Adds the handles that are in use with them to those that rooms have, by worker. A record
    /// with a handle that is taken, or is none, is left out.
    mutating func restoreGuests(
        _ saved: [String: [UInt8]],
        _ used: inout [Int: Room.Handles],
        at now: Instant
    ) {
        guard places != nil else { return }
        let until = now.advanced(milliseconds: Self.orphanMilliseconds)
        for (key, value) in saved.sorted(by: { $0.key < $1.key })
        where RoomRecords.parts(of: key)?.kind == .guest {
            guard let guest: SavedGuest = try? RestoredRecords.decode(value),
                (0..<setup.workers).contains(guest.worker),
                guest.handles.mayJoin(used[guest.worker] ?? .init(), setup.limits.identifiers)
            else {
                output.append(.log(.error, "saved participant is left out", [("key", key)]))
                continue
            }
            used[guest.worker, default: Room.Handles()].add(guest.handles)
            places?.guests.restore(guest, until: until)
        }
    }

    /// Ends what a home takes for going on, and has not built anew in the workers.
    mutating func endUnresumed(of home: String, in worker: Int, at now: Instant) {
        guard var guests = places?.guests.homes[home]?.workers[worker] else { return }
        var rest = GuestWorker(place: guests.place)
        for (id, objects) in guests.objects where objects.isSaved {
            rest.add(id, objects, from: guests)
            guests.objects[id] = nil
            guests.adopted.leases.removeAll { rest.publications[our: $0] != nil }
        }
        guard !rest.transports.isEmpty else { return }
        places?.guests.homes[home]?.workers[worker] = guests
        let former = FormerHome(node: home, boot: places?.guests.homes[home]?.boot ?? "")
        places?.guests.noteAll(of: former)
        let gone = rest.objects.keys.sorted { $0.index < $1.index }
        let events = gone.map { RemoteEvent.transport($0, .disconnected(.timeout)) }
        for resource in rest.resources(of: worker) {
            release(resource)
            places?.guests.forget(resource, in: worker)
        }
        tellHome(home, guests.place, events, at: now)
    }

    /// Forgets what no worker has: its home has not built it anew.
    mutating func forget(_ home: Guests.Home) {
        for (worker, guests) in home.workers.sorted(by: { $0.key < $1.key }) {
            for resource in guests.resources(of: worker) { release(resource) }
        }
    }
}

extension GuestWorker {
    /// Adds a transport of another one with all that it has.
    mutating func add(_ id: TransportID, _ known: Objects, from other: Self) {
        guard let our = other.transports[their: id] else { return }
        transports.add(id, as: our)
        objects[id] = known
        for publication in known.publications {
            guard let our = other.publications[their: publication] else { continue }
            publications.add(publication, as: our)
        }
        for slot in known.slots {
            guard let our = other.slots[their: slot] else { continue }
            slots.add(slot, as: our)
        }
    }

    /// All that it has, by our handles.
    fileprivate func resources(of worker: Int) -> [Room.WorkerResource] {
        transports.used.map { .transport(worker: worker, $0) }
            + publications.used.map { .publication(worker: worker, $0) }
            + slots.used.map { .slot(worker: worker, $0) }
    }
}
