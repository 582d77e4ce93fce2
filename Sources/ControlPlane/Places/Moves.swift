package import Contract
package import RTP
import Rooms
import WorkerInterface

// Nodes that drain: their participants are asked to connect elsewhere, and rooms go to other homes.

/// Participants that are asked to leave nodes that drain, and where they may go.
struct Moves {
    /// Nodes of the cluster, as they were shown last.
    fileprivate(set) var nodes: [NodeInfo] = []
    /// Nodes that drain, this one included, and since when that is known.
    fileprivate(set) var draining: [String: Instant] = [:]
    /// Participants that are to be asked, the first one last.
    fileprivate var queue: [(room: String, participant: String, from: String)] = []
    /// Time of the next question, or of the next look for somebody to ask.
    fileprivate(set) var next: Instant?
    /// Number of the next question, which spreads them over nodes that are alike.
    fileprivate var turn = 0
    /// Whether rooms go to other homes with participants still connected here.
    var isForced = false
    /// Time of the next look for rooms that may go.
    fileprivate var nextLook: Instant?
    /// Time from which on no room that was let go may come back.
    var settled: Instant?
    /// Words to the nodes of rooms that were let go, in the order of their times.
    var farewells: [Farewell] = []

    /// Time of the next thing to do.
    var deadline: Instant? { [next, farewells.first?.due, settled].compactMap(\.self).min() }

    /// Time between two questions: who moves needs a handshake at another node.
    fileprivate static let paceMilliseconds: Int64 = 20
    fileprivate static let lookMilliseconds: Int64 = 500
    /// Time after which somebody who has not moved is asked again.
    fileprivate static let reminderMilliseconds: Int64 = 30_000
    /// Time that rooms have after the deadline of a drain to go to other homes.
    static let graceMilliseconds: Int64 = 10_000
    /// Loads that differ by no more than this are alike.
    fileprivate static let preference = 0.1
    fileprivate static let regionLoad = 0.8
}

extension ControlPlane {
    /// Sets what `node.list` shows next, and begins or ends to empty nodes that drain.
    package mutating func show(_ nodes: NodeList.Result, at now: Instant) {
        life.nodes = nodes
        guard var moves = places?.moves else { return }
        moves.nodes = nodes.nodes
        let own = setup.node ?? ""
        var names = Set(nodes.nodes.filter { $0.state == .draining && $0.node != own }.map(\.node))
        if life.isDraining { names.insert(own) }
        moves.draining = moves.draining.filter { names.contains($0.key) }
        for name in names where moves.draining[name] == nil {
            moves.draining[name] = now
            moves.next = now
        }
        if !life.isDraining { moves.isForced = false }
        moves.queue.removeAll { moves.draining[$0.from] == nil }
        if moves.draining.isEmpty { moves.next = nil }
        places?.moves = moves
    }

    /// Place of a new transport of a participant whose own node drains.
    func detour(of participant: String, in room: String) -> Room.Offer.Destination? {
        guard let known = rooms[room]?.room.participants[participant],
            let own = setup.node, places?.moves.draining.isEmpty == false
        else { return nil }
        let node = (known.move.map(\.node) ?? known.node) ?? own
        guard places?.moves.draining[node] != nil, let other = destination(from: node, for: room)
        else { return nil }
        return Room.Offer.Destination(node: other == own ? nil : other)
    }

    /// Node where a participant connects that joins by way of a node; `nil` is this one.
    ///
    /// One that drains takes nobody, as long as there is another.
    func hostingNode(for caller: String?, in room: String) -> String? {
        let own = setup.node ?? ""
        let node = caller.flatMap { isReachable($0) ? $0 : nil } ?? own
        if places?.moves.draining[node] != nil, let other = destination(from: node, for: room) {
            return other == own ? nil : other
        }
        return node == own ? nil : node
    }

    /// Whether datagrams come through to another node.
    private func isReachable(_ node: String) -> Bool {
        node != setup.node && places?.nodes[node]?.isConnected == true
            && places?.hearing.isHeard(node) == true
    }

    /// Best node for a participant of a room that is to leave a node; `nil` if there is none.
    ///
    /// Nodes that are of the same region and not too busy come first, of them the least busy ones,
    /// and of these the home and those that have the room's media already.
    private func destination(from node: String, for room: String) -> String? {
        guard let moves = places?.moves else { return nil }
        let own = setup.node ?? ""
        var nodes = moves.nodes.filter {
            $0.state == .up && moves.draining[$0.node] == nil
                && ($0.node == own || isReachable($0.node))
        }
        let region = moves.nodes.first { $0.node == node }?.region
        let near = nodes.filter { $0.region == region && $0.load < Moves.regionLoad }
        if !near.isEmpty { nodes = near }
        guard let least = nodes.map(\.load).min() else { return nil }
        nodes = nodes.filter { $0.load <= least + Moves.preference }
        let used = Set(nodesOfTransports(in: room)).union([own])
        let familiar = nodes.filter { used.contains($0.node) }
        if !familiar.isEmpty { nodes = familiar }
        return nodes[moves.turn % nodes.count].node
    }

    private func nodesOfTransports(in room: String) -> [String] {
        (rooms[room]?.room.workers ?? []).map { name(ofNodeWith: $0) }
    }

    private func name(ofNodeWith worker: Int) -> String {
        shared.remote?.name(of: worker)?.node ?? setup.node ?? ""
    }

    /// Asks the next participant to move, and lets rooms go that nobody is connected to here.
    mutating func expireMoves(at now: Instant) {
        sayFarewells(at: now)
        if let settled = places?.moves.settled, settled <= now {
            places?.moves.settled = nil
            tellIfDrained()
        }
        guard let next = places?.moves.next, next <= now else { return }
        setTime(now)
        if places?.moves.nextLook ?? now <= now {
            places?.moves.nextLook = now.advanced(milliseconds: Moves.lookMilliseconds)
            if life.closesRooms { closeReturned(at: now) } else { handRoomsOver() }
            if places?.moves.isForced == true { sendGuestsAway(at: now) }
            tellIfDrained()
        }
        let isForced = places?.moves.isForced == true
        if places?.moves.queue.isEmpty == true, !isForced {
            let people = participantsToMove()
            places?.moves.queue = people.reversed()
        }
        let hasMore = askNext(at: now)
        let wait = hasMore ? Moves.paceMilliseconds : Moves.lookMilliseconds
        places?.moves.next = now.advanced(milliseconds: wait)
    }

    /// Whether no room is on its way to or from this node, and nobody of another home is here.
    var hasNoGuests: Bool {
        guard let places else { return true }
        return places.guests.transportCount == 0 && places.adoptions.isEmpty
            && places.moves.settled == nil
    }

    /// Tells the homes of those who are still connected here that they are gone.
    private mutating func sendGuestsAway(at now: Instant) {
        for (home, known) in (places?.guests.homes ?? [:]).sorted(by: { $0.key < $1.key }) {
            for (_, guests) in known.workers.sorted(by: { $0.key < $1.key }) {
                let gone = guests.objects.keys.map {
                    RemoteEvent.transport($0, .disconnected(.timeout))
                }
                tellHome(home, guests.place, gone, at: now)
            }
        }
    }

    /// Returns the participants at nodes that drain that have not been asked, or whose node cannot
    /// take them any longer.
    private func participantsToMove() -> [(room: String, participant: String, from: String)] {
        guard let moves = places?.moves else { return [] }
        var found: [(room: String, participant: String, from: String)] = []
        for name in rooms.names(withTransportsIn: workersThatDrain) {
            guard let room = rooms[name]?.room else { continue }
            for participant in room.participants.values {
                let nodes = participant.transports.map { self.name(ofNodeWith: $0.place.worker) }
                guard let node = nodes.first(where: { moves.draining[$0] != nil }),
                    let since = moves.draining[node], isToBeAsked(participant, since)
                else { continue }
                found.append((name, participant.id, node))
            }
        }
        return found
    }

    /// Workers of nodes that drain.
    private var workersThatDrain: [Int] {
        (places?.moves.draining ?? [:]).keys.flatMap { node in
            node == setup.node
                ? Array(0..<setup.workers) : shared.remote?.places(at: node) ?? []
        }
    }

    private func isToBeAsked(_ participant: Room.Participant, _ since: Instant) -> Bool {
        guard let move = participant.move, move.asked >= since else { return true }
        // A client that did not hear of it, or did not succeed.
        let isMoving = participant.transports.contains(where: \.isSuccessor)
        let age = shared.now.milliseconds(since: move.asked)
        if age >= Moves.reminderMilliseconds, !isMoving { return true }
        let own = setup.node ?? ""
        let node = move.node ?? own
        if places?.moves.draining[node] != nil { return true }
        return node != own && !isReachable(node)
    }

    /// Asks the next participant; returns whether others follow.
    private mutating func askNext(at now: Instant) -> Bool {
        guard let (name, participant, from) = places?.moves.queue.popLast(),
            let node = destination(from: from, for: name)
        else { return false }
        // It may have gone meanwhile.
        let transports = rooms[name]?.room.participants[participant]?.transports ?? []
        guard transports.contains(where: { self.name(ofNodeWith: $0.place.worker) == from }) else {
            return places?.moves.queue.isEmpty == false
        }
        places?.moves.turn += 1
        let other = node == setup.node ? nil : node
        let call = Room.Call.move(participant: participant, to: other, name: node)
        if let outcome = try? apply(call, in: RoomID(name)) {
            conclude(outcome, in: name, at: now)
        }
        return places?.moves.queue.isEmpty == false
    }

    /// Lets rooms go to other homes that nobody is connected to here, or all of them if their time
    /// is over.
    private mutating func handRoomsOver() {
        guard let own = setup.node, let moves = places?.moves, moves.draining[own] != nil,
            canHandOver
        else { return }
        // Most rooms of a large node are skipped without a look at them.
        let inUse = Set(rooms.names(withTransportsIn: 0..<setup.workers))
        for name in rooms.names where moves.isForced || !inUse.contains(name) {
            guard let room = rooms[name]?.room else { continue }
            let isHeld = room.hasTransports(in: 0..<setup.workers) || room.hasLastingOutputs
            guard moves.isForced || !isHeld else { continue }
            output.append(.handOver(room: name, isForced: moves.isForced))
        }
    }

    /// Whether another node takes rooms.
    var canHandOver: Bool {
        places?.moves.nodes.contains { $0.state == .up && isReachable($0.node) } == true
    }

    /// Lets the rooms that are left go to other homes, whoever is connected here; returns whether
    /// there is another node.
    mutating func forceHandover(at now: Instant) -> Bool {
        guard canHandOver, places?.moves.isForced == false else { return false }
        places?.moves.isForced = true
        places?.moves.nextLook = nil
        places?.moves.queue = []
        places?.moves.next = now
        return true
    }
}
