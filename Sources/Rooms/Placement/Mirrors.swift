import RTP
package import WorkerInterface

// Mirrors: relayed copies of publications in workers other than their home, the worker that
// receives them. The mirrors that are needed are compared with those the workers know of, and the
// difference is sent.

extension Room {
    /// Media for a slot: a publication, by its home, and the forwarding parameters.
    struct Feed: Hashable, Sendable, Codable {
        var home: RelayTarget
        var subscription: UInt64
        var open: Bool
        /// Layer limits: the subscriber's preference and its role's cap.
        var preference = LayerCap.none
        var roleCap = LayerCap.none
        var priority = 0
        var mayFallBack = true

        /// Returns the binding for a worker in which the publication has the handle `id`.
        func binding(to id: PublicationID) -> Binding {
            var binding = Binding(publication: id, subscription: subscription, open: open)
            binding.preference = preference
            binding.roleCap = roleCap
            binding.priority = priority
            binding.mayFallBack = mayFallBack
            return binding
        }
    }

    /// Relay state of a publication that is watched outside its home worker.
    struct Relay: Sendable {
        /// Mirrors by worker; one serves all slots there.
        var mirrors: [Int: KnownMirror] = [:]
        /// Relay targets as last sent to the home worker.
        var lastSent: [RelayTarget] = []

        /// Handles of the mirrors, by the order of their workers.
        var targets: [RelayTarget] {
            mirrors.sorted { $0.key < $1.key }.map { worker, mirror in
                RelayTarget(worker: worker, publication: mirror.id)
            }
        }
    }

    /// Mirror as last sent to its worker, with the number of slots bound to it.
    struct KnownMirror: Sendable {
        var lastSent: Mirror
        var users = 0
        /// Whether the home has yet to be asked to hold packets until the mirror requests earlier
        /// audio.
        var isHeld = false

        var id: PublicationID { lastSent.configuration.id }
    }

    /// Assigns media to a slot and tells the worker if that is a change.
    ///
    /// If the worker has no handle left for a mirror, the slot stays empty until it is bound again.
    /// Calls are refused before that happens.
    mutating func bind(
        _ name: SlotName,
        of participant: String,
        to feed: Feed?,
        from start: Instant? = nil,
        _ transaction: inout RoomTransaction
    ) {
        guard let feed else { return unbind(name, of: participant, &transaction) }
        guard let (slot, worker) = seat(name, of: participant), slot.bound != feed else { return }
        let id =
            if slot.bound?.home == feed.home {
                placement.publication(feed.home, in: worker)
            } else {
                join(feed.home, in: worker, from: start, &transaction)
            }
        guard let id else { return unbind(name, of: participant, &transaction) }
        withSlot(name, of: participant) { $0.bound = feed }
        var binding = feed.binding(to: id)
        binding.from = start
        transaction.tell(worker, .bind(slot.id, binding))
        // Only after the slot has its new media, so that no worker ends a mirror in use.
        if let old = slot.bound?.home, old != feed.home { leave(old, in: worker, &transaction) }
    }

    /// Empties a slot.
    mutating func unbind(
        _ name: SlotName,
        of participant: String,
        _ transaction: inout RoomTransaction
    ) {
        guard let (slot, worker) = seat(name, of: participant), let old = slot.bound else { return }
        withSlot(name, of: participant) { $0.bound = nil }
        transaction.tell(worker, .bind(slot.id, nil))
        leave(old.home, in: worker, &transaction)
    }

    /// Ends unused mirrors and brings the others and their homes up to date.
    mutating func reconcileRelays(_ transaction: inout RoomTransaction) {
        for home in transaction.takeTouched() { reconcile(relayOf: home, &transaction) }
    }

    private mutating func reconcile(relayOf home: RelayTarget, _ transaction: inout RoomTransaction)
    {
        guard var relay = placement.relays[home] else { return }
        let track = track(of: home)
        for (worker, var mirror) in relay.mirrors.sorted(by: { $0.key < $1.key }) {
            if mirror.users == 0 {
                relay.mirrors[worker] = nil
                transaction.tell(worker, .unmirror(mirror.id))
                free(.publication(worker: worker, mirror.id), &transaction)
            } else if let track {
                reconcile(&mirror, in: worker, as: track, &transaction)
                relay.mirrors[worker] = mirror
            } else {
                preconditionFailure("a publication ends before its mirrors do")
            }
        }
        let targets = relay.targets
        // If the publication has ended, its relay list has ended with it.
        if track != nil, targets != relay.lastSent {
            relay.lastSent = targets
            transaction.tell(home.worker, .relay(home.publication, to: targets))
            for target in targets where relay.mirrors[target.worker]?.isHeld == true {
                relay.mirrors[target.worker]?.isHeld = false
                transaction.tell(home.worker, .hold(home.publication, for: target))
            }
        }
        placement.relays[home] = relay.mirrors.isEmpty ? nil : relay
    }

    private func reconcile(
        _ mirror: inout KnownMirror,
        in worker: Int,
        as track: Track,
        _ transaction: inout RoomTransaction
    ) {
        var configuration = track.configuration
        configuration.id = mirror.id
        let before = mirror.lastSent
        // First both: what is told of the one must not say what the other was.
        mirror.lastSent.configuration = configuration
        mirror.lastSent.open = track.gate ?? false
        if before.configuration != configuration {
            transaction.tell(worker, .mirror(mirror.lastSent))
        }
        if before.open != mirror.lastSent.open {
            transaction.tell(worker, .gate(mirror.id, open: mirror.lastSent.open))
        }
    }

    /// Counts one more user of a publication in a worker; makes the mirror if needed.
    mutating func join(
        _ home: RelayTarget,
        in worker: Int,
        from start: Instant?,
        _ transaction: inout RoomTransaction
    ) -> PublicationID? {
        guard worker != home.worker else { return home.publication }
        if placement.relays[home]?.mirrors[worker] == nil {
            guard let track = track(of: home),
                let id = transaction.shared.identifiers[worker].publications.allocate()
            else { return nil }
            var configuration = track.configuration
            configuration.id = id
            var mirror = Mirror(
                configuration: configuration,
                home: home,
                open: track.gate ?? false
            )
            var known = KnownMirror(lastSent: mirror)
            known.isHeld = start != nil
            var relay = placement.relays[home] ?? Relay()
            relay.mirrors[worker] = known
            placement.relays[home] = relay
            mirror.from = start
            transaction.tell(worker, .mirror(mirror))
            transaction.touch(home)
        }
        placement.relays[home]?.mirrors[worker]?.users += 1
        return placement.publication(home, in: worker)
    }

    /// Mirrors in some workers, as last sent, with the worker of each; in a fixed order.
    package func mirrors(in workers: Set<Int>) -> [(worker: Int, mirror: Mirror)] {
        let mirrors = placement.relays.values.flatMap { relay in
            relay.mirrors.filter { workers.contains($0.key) }
                .map { (worker: $0.key, mirror: $0.value.lastSent) }
        }
        return mirrors.sorted {
            ($0.worker, $0.mirror.configuration.id.index)
                < ($1.worker, $1.mirror.configuration.id.index)
        }
    }

    mutating func leave(_ home: RelayTarget, in worker: Int, _ transaction: inout RoomTransaction) {
        guard worker != home.worker else { return }
        placement.relays[home]?.mirrors[worker]?.users -= 1
        transaction.touch(home)
    }

    func track(of home: RelayTarget) -> Track? {
        let place = WorkerResource.publication(worker: home.worker, home.publication)
        guard let owner = placement.owner(of: place), let participant = participants[owner] else {
            return nil
        }
        for transport in participant.transports where transport.place.worker == home.worker {
            if let track = transport.tracks.first(where: { $0.publication == home.publication }) {
                return track
            }
        }
        return nil
    }

    /// Checks that the slots' workers have free handles for the mirrors that they need.
    func checkHandles(
        for slots: [MediaKind: SlotName],
        of subscriber: Participant,
        carrying stream: Stream,
        _ shared: Shared
    ) throws(CallError) {
        var needed: [Int: Int] = [:]
        for (kind, name) in slots {
            guard let home = stream.home(kind), let seat = seat(name, of: subscriber.id),
                placement.publication(home, in: seat.worker) == nil
            else { continue }
            needed[seat.worker, default: 0] += 1
        }
        for (worker, count) in needed.sorted(by: { $0.key < $1.key }) {
            let publications = shared.identifiers[worker].publications
            guard publications.available >= count else {
                throw .limitReached("handlesPerWorker", publications.used)
            }
        }
    }
}
