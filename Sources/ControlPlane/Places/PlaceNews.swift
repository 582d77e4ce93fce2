import JSON
package import RTP
import Rooms
import WorkerInterface

// News of nodes.
extension ControlPlane {
    /// Facts about this node's workers, for the others.
    package var placeFacts: [UInt8] {
        let pools = setup.limits.identifiers
        return JSON.compact(
            PlaceFacts(
                version: PlaceFacts.version,
                workers: shared.locals,
                transports: pools.transports.available,
                publications: pools.publications.available,
                slots: pools.slots.available,
                feedsHomes: true,
                keeps: places?.guests.savedHomes
            )
        )
    }

    /// Takes another node's facts: participants may connect there from now on.
    package mutating func takePlaceFacts(_ bytes: [UInt8], of node: String, at now: Instant) {
        guard places != nil, let facts = JSON.sent(PlaceFacts.self, bytes), facts.isValid else {
            let fields = [("node", node)]
            return output.append(.log(.warning, "node of another version", fields))
        }
        shared.notePlaces(
            at: node,
            facts.workers,
            WorkerIdentifiers(
                transports: facts.transports,
                publications: facts.publications,
                slots: facts.slots
            )
        )
        rooms.records.hasNewPlaces = true
        places?.nodes[node, default: Places.Node()].feedsHomes = facts.feedsHomes == true
        let isKept = facts.keeps?.contains(ownLife) == true
        places?.nodes[node]?.keepsGuests = isKept
        places?.nodes[node]?.facts = bytes
        if isKept, places?.nodes[node]?.returning == nil { endKept(at: node) }
        guard let known = places?.nodes[node], !known.isConnected else { return }
        places?.nodes[node]?.isConnected = true
        guard known.returning == nil else { return goOn(at: node, at: now) }
        endFormer(at: node)
        // It gets leases when it has passed a first fence, for which it has as long as others.
        if !known.isLeaving, known.deniedAt != nil { places?.nodes[node]?.deniedAt = now }
    }

    /// Ends the transports at a node that is lost.
    ///
    /// Datagrams may still come through to it, so its leases are withheld, and its fences are
    /// passed when they are over.
    package mutating func losePlaces(at node: String, at now: Instant) {
        guard let remote = shared.remote else { return }
        shared.losePlaces(at: node)
        stopAsking(node)
        places?.nodes[node]?.returning = nil
        places?.nodes[node]?.formerEnds = []
        _ = places?.detours.set([], unheardBy: node)
        endTransports(in: Set(remote.places(at: node)), of: node, at: now)
    }

    /// Ends the transports of restored rooms at other nodes whose places are not known.
    mutating func loseRestoredPlaces(at now: Instant) {
        guard let remote = shared.remote else { return }
        let workers = rooms.owners.keys.compactMap { resource -> Int? in
            guard case .transport(let worker, _) = resource, worker >= remote.first else {
                return nil
            }
            return remote.name(of: worker) == nil ? worker : nil
        }
        endTransports(in: Set(workers), of: nil, at: now)
    }

    mutating func endTransports(in lost: Set<Int>, of node: String?, at now: Instant) {
        if let node { leave(node) }
        let transports = rooms.owners.keys.compactMap { resource -> Room.TransportLocation? in
            guard case .transport(let worker, let id) = resource, lost.contains(worker) else {
                return nil
            }
            return Room.TransportLocation(worker: worker, id: id)
        }
        for place in transports.sorted(by: {
            ($0.worker, $0.id.index) < ($1.worker, $1.id.index)
        }) {
            receive(.transport(place.id, .disconnected(.timeout)), from: place.worker, at: now)
        }
        answerQuestions(to: lost.sorted(), at: now)
    }

    /// Lets nobody wait for figures of workers that do not tell them any longer.
    mutating func answerQuestions(to workers: [Int], at now: Instant) {
        for worker in workers {
            for token in workerRequests.reports(awaiting: worker) {
                receive(.statistics(token: token, WorkerStatistics()), from: worker, at: now)
            }
            for token in workerRequests.explanations(awaiting: worker) { explained(nil, token) }
        }
    }

    /// Takes an event of a worker of another node.
    package mutating func receivePlaceEvents(
        _ bytes: [UInt8],
        from node: String,
        at now: Instant
    ) {
        guard let message = JSON.sent(PlaceEvents.self, bytes) else {
            if let answer = JSON.sent(AdoptionAnswer.self, bytes) {
                return take(answer, of: node, at: now)
            }
            guard let unheard = JSON.sent(UnheardNodes.self, bytes) else {
                return refuseNews(of: node)
            }
            return take(unheard, of: node, at: now)
        }
        guard shared.remote?.name(of: message.place)?.node == node else {
            return refuseNews(of: node)
        }
        let offset = now.nanoseconds &- message.clock.nanoseconds
        for event in message.events {
            let event = event.event(offset: offset, now: now)
            if case .fenced(let epoch, let at, let packets) = event {
                passPlace(epoch, by: message.place, of: node, at: at, packets)
            } else {
                receive(event, from: message.place, at: now)
            }
        }
    }

    private mutating func refuseNews(of node: String) {
        let fields = [("node", node)]
        output.append(.log(.warning, "unknown news of a node", fields))
    }

    /// Notes a fence of a node.
    private mutating func passPlace(
        _ epoch: UInt64,
        by place: Int,
        of node: String,
        at passed: Instant,
        _ packets: UInt64
    ) {
        places?.nodes[node]?.pass(epoch, by: place)
        // It has been built anew, whatever facts that were under way say.
        places?.nodes[node]?.keepsGuests = false
        if places?.nodes[node]?.owesNothing == true {
            places?.nodes[node]?.formerLeaseEnd = nil
            grant(node)
        }
        guard operations.awaits(epoch, from: place) else { return }
        fenced(epoch, by: place, at: passed, packets)
    }
}
