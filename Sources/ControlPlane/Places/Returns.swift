import JSON
package import RTP
import Rooms
import WorkerInterface

// Participants at other nodes whose home has begun again with its rooms: it goes on with them as
// another home would, under the names that they have.

extension Places {
    /// Messages to a node that is heard again, in this order.
    struct Return {
        /// Everything there, at the moment when this was made.
        var orders: [AdoptionOrder] = []
        /// An end for each room and worker that the orders name.
        var ends: [AdoptionEnd] = []
        /// Commands since then, which name what has come and gone meanwhile.
        var commands: [(place: Int, commands: [WorkerCommand])] = []
    }
}

extension ControlPlane {
    /// Nodes that this process has yet to hear, with participants of rooms that it goes on with.
    package var nodesAwaited: [String] {
        (places?.nodes ?? [:]).filter { $0.value.returning != nil }.keys.sorted()
    }

    /// Waits for the nodes that have transports of restored rooms.
    ///
    /// Commands for them wait, too, and they get no leases before they have taken these. The
    /// leases that the process before gave them may go on for as long as those of a home that has
    /// died.
    mutating func awaitPlaces(at now: Instant) {
        let used = Set(rooms.names.flatMap { rooms.entries[$0]?.room.handles.keys.sorted() ?? [] })
        let nodes = Set(used.compactMap { shared.remote?.name(of: $0)?.node })
        for node in nodes.sorted() {
            var awaited = Places.Node()
            awaited.isConnected = false
            awaited.isLeaving = true
            awaited.returning = everything(at: node)
            awaited.formerLeaseEnd = now.advanced(milliseconds: Adoption.patienceMilliseconds)
            places?.nodes[node] = awaited
            deny(node)
        }
    }

    /// Returns the orders that name everything at a node.
    ///
    /// They are made before the first call, so that the commands of calls find what they name, and
    /// an offer in between is not taken for a transport that the node has.
    private func everything(at node: String) -> Places.Return {
        var all = Places.Return()
        for name in rooms.names {
            guard let room = rooms.entries[name]?.room else { continue }
            for place in shared.remote?.places(at: node) ?? [] {
                guard let worker = shared.remote?.name(of: place)?.worker else { continue }
                let orders = orders(for: room, at: worker, place)
                guard !orders.isEmpty else { continue }
                all.orders += orders
                all.ends.append(
                    AdoptionEnd(
                        room: name,
                        former: ownLife,
                        worker: worker,
                        formerPlace: place
                    )
                )
            }
        }
        return all
    }

    /// Goes on with the transports at a node that is heard again.
    ///
    /// The node tells which of them it no longer has.
    mutating func goOn(at node: String, at now: Instant) {
        guard let waiting = places?.nodes[node]?.returning else { return }
        places?.nodes[node]?.returning = nil
        places?.nodes[node]?.isLeaving = false
        if places?.nodes[node]?.keepsGuests == true {
            // Its process has begun again as well.
            return rebuild(at: node, at: now)
        }
        send(waiting.orders, to: node)
        tell(node, waiting.ends)
        for (place, commands) in waiting.commands { tell(place, commands) }
        logReturn(of: waiting, at: node)
    }

    private mutating func send(_ orders: [AdoptionOrder], to node: String) {
        for order in orders {
            output.append(.place(node: node, asHome: true, JSON.compact(order)))
        }
    }

    private mutating func logReturn(of waiting: Places.Return, at node: String) {
        let count = waiting.orders.reduce(0) { $0 + $1.transports.count }
        let fields = [("node", node), ("transports", "\(count)")]
        output.append(.log(.info, "participants at another node go on", fields))
    }

    private mutating func tell(_ node: String, _ ends: [AdoptionEnd]) {
        for end in ends { output.append(.place(node: node, asHome: true, JSON.compact(end))) }
    }

    /// Lets a node that is heard too late end what it has kept.
    mutating func endFormer(at node: String) {
        let ends = places?.nodes[node]?.formerEnds ?? []
        tell(node, ends)
        places?.nodes[node]?.formerEnds = []
    }

    /// Ends the transports at a node that has not been heard in time.
    mutating func giveUp(_ node: String, at now: Instant) {
        let ends = places?.nodes[node]?.returning?.ends ?? []
        places?.nodes[node]?.formerEnds = ends
        places?.nodes[node]?.returning = nil
        endTransports(in: Set(shared.remote?.places(at: node) ?? []), of: nil, at: now)
    }

    /// Takes it that a node does not go on with what this home had there.
    ///
    /// If its process has begun again with what the one before had saved, this home builds it anew.
    package mutating func disownPlaces(at node: String, at now: Instant) {
        guard places?.nodes[node]?.keepsGuests != true else { return rebuild(at: node, at: now) }
        let workers = Set(shared.remote?.places(at: node) ?? [])
        if !rooms.names(withTransportsIn: workers).isEmpty {
            let fields = [("node", node)]
            output.append(.log(.warning, "participants at another node lost", fields))
        }
        let facts = places?.nodes[node]?.facts ?? []
        losePlaces(at: node, at: now)
        // It is there still, for others.
        takePlaceFacts(facts, of: node, at: now)
    }

    /// Builds anew what a node has of this home's rooms, from what its process has kept.
    private mutating func rebuild(at node: String, at now: Instant) {
        setTime(now)
        places?.nodes[node]?.keepsGuests = false
        passFences(of: node, at: now)
        // It has as long as others for the next ones, and has yet to tell whom it does not hear.
        if places?.nodes[node]?.deniedAt != nil { places?.nodes[node]?.deniedAt = now }
        _ = places?.detours.set([], unheardBy: node)
        let workers = shared.remote?.places(at: node) ?? []
        answerQuestions(to: workers, at: now)
        var known = everything(at: node)
        if known.ends.isEmpty { known.ends.append(endOfNothing) }
        for index in known.orders.indices { known.orders[index].isRebuilt = true }
        send(known.orders, to: node)
        for name in rooms.names(withTransportsIn: Set(workers)) {
            let change = rooms.entries[name]?.room.rebuildWorkers(in: Set(workers), &shared)
            guard let change else { continue }
            conclude(Room.Outcome(change: change), in: name, at: now)
        }
        tell(node, known.ends)
        logReturn(of: known, at: node)
    }

    /// Lets a node that has begun again wait for nobody: all that it has kept have left meanwhile.
    mutating func endKept(at node: String) {
        let workers = Set(shared.remote?.places(at: node) ?? [])
        guard rooms.names(withTransportsIn: workers).isEmpty else { return }
        tell(node, [endOfNothing])
    }

    private var endOfNothing: AdoptionEnd {
        AdoptionEnd(room: "", former: ownLife, worker: nil, formerPlace: 0)
    }

    /// Waits no longer for what a node's process before was told: the present one has nothing yet.
    private mutating func passFences(of node: String, at now: Instant) {
        let awaited = places?.nodes[node]?.awaited ?? [:]
        places?.nodes[node]?.awaited = [:]
        places?.nodes[node]?.late = [:]
        for (epoch, workers) in awaited.sorted(by: { $0.key < $1.key }) {
            for worker in workers.keys.sorted() where operations.awaits(epoch, from: worker) {
                fenced(epoch, by: worker, at: now, 0)
            }
        }
    }

    /// This home's life, which is that of the process before.
    var ownLife: FormerHome { FormerHome(node: setup.node ?? "", boot: setup.bootID) }

    /// Orders to go on with a room's transports in one worker, each under the name that it has.
    private func orders(for room: Room, at worker: Int, _ place: Int) -> [AdoptionOrder] {
        let empty = AdoptionOrder(former: ownLife, worker: worker, place: place, formerPlace: place)
        var orders: [AdoptionOrder] = []
        for transport in room.transports(at: place) {
            var names = empty
            names.transports.append(
                AdoptionOrder.Transport(
                    name: AdoptionOrder.Name(transport.place.id),
                    isConnected: transport.connection == .connected,
                    isReconnecting: transport.connection == .reconnecting
                )
            )
            names.publications = transport.handles.publications.map(AdoptionOrder.Name.init)
            names.slots = transport.handles.slots.map(AdoptionOrder.Name.init)
            orders.add(names)
        }
        guard !orders.isEmpty else { return [] }
        for mirror in room.mirrors(at: place) {
            var names = empty
            names.publications = [AdoptionOrder.Name(mirror)]
            orders.add(names)
        }
        return orders
    }
}

extension AdoptionOrder.Name {
    /// The name that an object keeps.
    fileprivate init(_ handle: Handle<Kind>) { self.init(old: handle, new: handle) }
}
