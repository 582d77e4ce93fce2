import JSON
import RTP
import Rooms
import WorkerInterface

// Transports that outlive the home of their room: the new home asks the nodes where they are, and
// gives them names of its own.

/// Life of a node that was the home of rooms.
struct FormerHome: Hashable, Codable {
    var node: String
    var boot: String
}

/// Question of a room's new home, which transports of the former one go on at a node.
struct AdoptionQuestion: Codable {
    var room: String
    var former: FormerHome
    /// Transports in the former home's words.
    var asked: [Room.TransportLocation]
}

/// Answer to an `AdoptionQuestion`.
struct AdoptionAnswer: Codable {
    /// A mirror, and the publication that it is of, in the former home's words.
    struct Mirror: Codable {
        var place: Int
        var id: PublicationID
        var home: RelayTarget
    }

    /// A transport that goes on.
    struct Kept: Codable {
        /// In the former home's words.
        var transport: Room.TransportLocation
        /// Worker of the node.
        var worker: Int
        /// The outcome of its offers, encoded.
        var negotiation: [UInt8]
    }

    var room: String
    var kept: [Kept]
    /// Mirrors of the workers that have such transports.
    var mirrors: [Mirror]
    /// Whether no further part of the answer follows.
    var isLast = true

    /// Transports that a room may keep at one node.
    static let limit = 65_536

    /// The parts in which it is sent, none longer than `PlaceEvents.byteLimit` but for one that has
    /// a single transport.
    var parts: [[UInt8]] {
        let bytes = JSON.compact(self)
        guard bytes.count > PlaceEvents.byteLimit, kept.count > 1 else { return [bytes] }
        var (first, rest) = (self, self)
        first.kept = Array(kept.prefix(kept.count / 2))
        first.isLast = false
        rest.kept = Array(kept.dropFirst(kept.count / 2))
        rest.mirrors = []
        return first.parts + rest.parts
    }
}

/// Order of a room's new home to go on with transports of the former one, under other names.
struct AdoptionOrder: Codable {
    struct Name<Kind>: Codable {
        var old: Handle<Kind>
        var new: Handle<Kind>
    }

    struct Transport: Codable {
        var name: Name<HandleKind.Transport>
        /// Whether the new home takes it for connected, or for interrupted.
        var isConnected: Bool
        var isReconnecting: Bool
    }

    var former: FormerHome
    /// Worker of the node, and its number in the new home's words.
    var worker: Int
    var place: Int
    /// Number that the former home had given the worker.
    var formerPlace: Int
    var transports: [Transport] = []
    /// Publications and mirrors.
    var publications: [Name<HandleKind.Publication>] = []
    var slots: [Name<HandleKind.Slot>] = []
    /// Whether commands follow that build all of it anew; those of an earlier version leave it out.
    var isRebuilt: Bool?

    /// Whether it names as much as one message is to.
    var isFull: Bool { transports.count + publications.count + slots.count >= Self.limit }

    private static let limit = 10_000
}

/// End of a takeover, behind the state of what goes on.
///
/// All else that the node has of the room ends, and the leases are the new home's from here on. A
/// home that has let a room go sends it too, without a worker, for what nobody has asked about.
struct AdoptionEnd: Codable {
    var room: String
    var former: FormerHome
    /// Worker of the node, if anything goes on there, and its number in the former home's words.
    var worker: Int?
    var formerPlace: Int
}

/// A room that is taken over, while the nodes with its transports are asked.
struct Adoption {
    var room: ForeignRoom
    var former: FormerHome
    /// Nodes that have not answered.
    var waiting: Set<String>
    /// Whether a node cannot be asked: what it holds is over by `until`.
    var isBlind: Bool
    var until: Instant
    /// Transports that go on, in the former home's words, with their nodes.
    var kept: [(node: String, transport: AdoptionAnswer.Kept)] = []
    /// Mirrors, in the former home's words.
    var mirrors: [AdoptionAnswer.Mirror] = []

    var isDue: Bool { waiting.isEmpty && !isBlind }

    /// Time for the answers: a node that does not give one forwards nothing more by then, as its
    /// lease of the former home is over (`LinkMedia.prolongedMilliseconds`), for clocks that differ
    /// by a share.
    static let patienceMilliseconds: Int64 = 4_250
}

// At the new home.
extension ControlPlane {
    /// Asks the nodes that hold transports of a room of a lost node, and goes on with it when they
    /// have answered; `takeAdopted` then tells the outcome.
    mutating func begin(_ room: ForeignRoom, of former: FormerHome, at now: Instant) {
        var adoption = Adoption(
            room: room,
            former: former,
            waiting: [],
            isBlind: false,
            until: now.advanced(milliseconds: Adoption.patienceMilliseconds)
        )
        let own = setup.node ?? ""
        cancelAdoption(of: room.name)
        if former.node == own { withdrawFarewells(of: room.name) }
        for node in room.parts.nodes.sorted() {
            let question = AdoptionQuestion(
                room: room.name,
                former: former,
                asked: room.parts.transports(at: node)
            )
            guard node != own else {
                keepOwn(question, at: now)
                continue
            }
            guard node != former.node else { continue }
            guard places?.nodes[node]?.isConnected == true else {
                adoption.isBlind = true
                continue
            }
            adoption.waiting.insert(node)
            output.append(.place(node: node, asHome: true, JSON.compact(question)))
        }
        if adoption.isDue { return finish(adoption, at: now) }
        places?.adoptions[room.name] = adoption
    }

    /// Takes a node's answer.
    mutating func take(_ answer: AdoptionAnswer, of node: String, at now: Instant) {
        guard let asked = places?.adoptions[answer.room], asked.waiting.contains(node),
            asked.kept.count + answer.kept.count <= AdoptionAnswer.limit
        else { return }
        if answer.isLast { places?.adoptions[answer.room]?.waiting.remove(node) }
        places?.adoptions[answer.room]?.kept += answer.kept.map { (node, $0) }
        places?.adoptions[answer.room]?.mirrors += answer.mirrors
        guard let adoption = places?.adoptions[answer.room], adoption.isDue else { return }
        places?.adoptions[answer.room] = nil
        finish(adoption, at: now)
    }

    /// Expects nothing more of a node that is lost; what it holds is over by the end of the wait.
    mutating func stopAsking(_ node: String) {
        for (room, adoption) in places?.adoptions ?? [:]
        where adoption.room.parts.nodes.contains(node) {
            places?.adoptions[room]?.waiting.remove(node)
            places?.adoptions[room]?.isBlind = true
        }
    }

    /// Gives up going on with a room, if that is under way.
    package mutating func cancelAdoption(of room: String) { places?.adoptions[room] = nil }

    /// Goes on with the rooms whose transports were asked for long enough.
    mutating func expireAdoptions(at now: Instant) {
        for (room, adoption) in (places?.adoptions ?? [:]).sorted(by: { $0.key < $1.key })
        where adoption.until <= now {
            places?.adoptions[room] = nil
            finish(adoption, at: now)
        }
    }

    /// Goes on with a room; if its transports do not fit together, without them.
    private mutating func finish(_ adoption: Adoption, at now: Instant) {
        setTime(now)
        var adoption = adoption
        adoption.kept.removeAll { places?.nodes[$0.node]?.isConnected != true }
        let before = (shared, places)
        do {
            do {
                try open(adoption, keepsTransports: true, at: now)
            } catch {
                (shared, places) = before
                let fields = [("room", adoption.room.name), ("error", "\(error)")]
                output.append(.log(.warning, "transports cannot be taken over", fields))
                try open(adoption, keepsTransports: false, at: now)
            }
        } catch {
            (shared, places) = before
            journals.abandon(adoption.room.name)
            let fields = [("room", adoption.room.name), ("error", "\(error)")]
            output.append(.log(.error, "room cannot be taken over", fields))
            life.adopted.append((adoption.room.name, nil))
        }
    }

    private mutating func open(
        _ adoption: Adoption,
        keepsTransports: Bool,
        at now: Instant
    ) throws {
        let foreign = adoption.room
        var adoption = adoption
        adoption.nameMirrors(of: places?.guests, at: setup.node ?? "")
        guard rooms[foreign.name] == nil, rooms.count < setup.limits.rooms else {
            throw UnreadableRecord(cause: "there is no place for the room")
        }
        for number in foreign.parts.subscriptions.map(\.number)
        where rooms.owners[.subscription(number)] != nil {
            throw UnreadableRecord(cause: "subscription \(number) is one of another room")
        }
        var plan = AdoptionPlan(adoption, own: setup.node ?? "")
        try plan.nameAll(places?.guests, keepsTransports: keepsTransports, &shared)
        let taken = try Room.takeOver(
            adoption.room.parts,
            plan.renaming,
            negotiations: plan.negotiations,
            at: setup.node ?? "",
            because: .nodeLost,
            worker: rooms.leastLoadedWorker(shared.identifiers),
            &shared
        )
        var entry = RoomEntry(room: taken.room, settings: foreign.settings.shown, setup)
        try entry.restore(foreign.settings, foreign.people, foreign.own, foreign.records)
        journals.adopt(foreign.name, foreign.journal, foreign.records.events)
        rooms.open(entry)
        life.adopted.append((foreign.name, foreign.journal.numbered))
        let fields = [
            ("room", foreign.name), ("participants", "\(foreign.people.count)"),
            ("transports", "\(plan.renaming.kept.count)"),
        ]
        output.append(.log(.info, "room taken over", fields))
        var heirs: [Int: GuestWorker] = [:]
        for (node, order) in plan.sortedOrders {
            if node == setup.node {
                adoptHere(order, &heirs)
            } else {
                output.append(.place(node: node, asHome: true, JSON.compact(order)))
            }
        }
        conclude(Room.Outcome(change: taken.change), in: foreign.name, at: now)
        // Only now is all that the room has lost known where it goes on.
        for (node, end) in plan.ends {
            if node == setup.node {
                endAdoptionHere(end, end.worker.flatMap { heirs[$0] }, at: now)
            } else {
                output.append(.place(node: node, asHome: true, JSON.compact(end)))
            }
        }
    }

    /// Rooms of lost nodes that go on here, with the numbers of their last events from there, and
    /// those that cannot (`nil`), since the last call.
    package mutating func takeAdopted() -> [(room: String, last: UInt64?)] {
        defer { life.adopted = [] }
        return life.adopted
    }
}

extension Adoption {
    /// Gives the room the mirrors that its transports use.
    fileprivate mutating func nameMirrors(of guests: Guests?, at own: String) {
        let here = guests?.formerHome(former)
        let places = Set(room.parts.transports.filter { $0.node == own }.map(\.place.worker))
        let all = mirrors + places.sorted().flatMap { here?.mirrors(at: $0) ?? [] }
        var targets: [RelayTarget: [Int: RelayTarget]] = [:]
        for mirror in all {
            targets[mirror.home, default: [:]][mirror.place] =
                RelayTarget(worker: mirror.place, publication: mirror.id)
        }
        room.parts.mirrors = targets.map { home, mirrors in
            Room.SavedMirrors(home: home, mirrors: mirrors.sorted { $0.key < $1.key }.map(\.value))
        }
    }
}

extension Room.ForeignParts {
    /// Transports at a node, in the other host's words.
    fileprivate func transports(at node: String) -> [Room.TransportLocation] {
        transports.filter { $0.node == node }.map(\.place)
    }
}
