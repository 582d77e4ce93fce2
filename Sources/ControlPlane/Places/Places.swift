import Contract
import JSON
import RTP
import Rooms
import WorkerInterface

/// Knowledge of participants that connect elsewhere than at their room's home.
struct Places {
    /// Another node where participants of rooms of this home may connect.
    struct Node {
        /// Whether commands reach it; those for a node that is lost are dropped.
        var isConnected = true
        /// Whether it was lost so lately that its last leases may not be over: nothing that it
        /// would have to know takes effect before.
        var isLeaving = false
        /// Whether homes get media of its publishers for other nodes.
        var feedsHomes = false
        /// Facts that it has told of itself last.
        var facts: [UInt8] = []
        /// Whether its process has begun again, and waits for this home to build anew what the one
        /// before had.
        var keepsGuests = false
        /// Fences that it has not passed, with the times at which they were sent.
        var awaited: [UInt64: [Int: Instant]] = [:]
        /// Fences that were given up, with the places that have not passed them.
        var late: [UInt64: Set<Int>] = [:]
        /// Whether its leases are withheld, as it does not answer.
        var isDenied = false
        /// Time at which the link thread withheld the leases.
        var deniedAt: Instant?
        /// Fence of the link thread behind that.
        var denial: UInt64?

        /// Messages for its places until it is heard again; `nil` for most.
        ///
        /// This process goes on with participants that connected there before it began.
        var returning: Return?
        /// Ends of what that process had there, which it is sent when it is heard after all.
        var formerEnds: [AdoptionEnd] = []
        /// End of the leases that this home's process before has given it, if it has not passed a
        /// fence since.
        var formerLeaseEnd: Instant?

        /// Whether it has passed all fences, also those that were given up.
        var owesNothing: Bool { awaited.isEmpty && late.isEmpty }

        mutating func pass(_ epoch: UInt64, by place: Int) {
            awaited[epoch]?[place] = nil
            if awaited[epoch]?.isEmpty == true { awaited[epoch] = nil }
            late[epoch]?.remove(place)
            if late[epoch]?.isEmpty == true { late[epoch] = nil }
        }

        /// Notes that its last leases are over, whatever it has passed.
        mutating func giveUp() {
            for (epoch, places) in awaited where !isLeaving {
                late[epoch, default: []].formUnion(places.keys)
            }
            awaited = [:]
            isLeaving = false
            formerLeaseEnd = nil
        }

        /// Time of the next look at its fences; `nil` while nothing is awaited.
        var due: Instant? {
            if let formerLeaseEnd { return formerLeaseEnd }
            let sent = awaited.values.flatMap(\.values).min()
            guard isLeaving || sent != nil else { return nil }
            if let deniedAt {
                return deniedAt.advanced(milliseconds: Places.leaseMilliseconds)
            }
            return isDenied ? nil : sent?.advanced(milliseconds: Places.patienceMilliseconds)
        }
    }

    var nodes: [String: Node] = [:]
    var hearing = Hearing()
    var detours = Detours()
    var routes: MediaRoutes
    /// Publications of this home's transports here, for what goes to other nodes.
    var publications: [Room.TransportLocation: Set<PublicationID>] = [:]
    var guests = Guests()
    /// Rooms of lost nodes that are about to go on here.
    var adoptions: [String: Adoption] = [:]
    var moves = Moves()
    /// Fences that ask the link thread alone.
    var lastDenial: UInt64 = 0

    init(recorder: Int, link: Int) { routes = MediaRoutes(recorder: recorder, link: link) }

    /// Time after which a node that has not passed a fence gets no more leases.
    static let patienceMilliseconds: Int64 = 250
    /// Life of a lease, and a share more for clocks that differ.
    static let leaseMilliseconds: Int64 = 1_050
    /// Denials of leases are fences of the link thread above those of guests.
    static let firstDenial: UInt64 = 1 << 62

    /// Time of the next look at fences that are awaited, at rooms that are taken over, at guests of
    /// lost homes, at participants that are to move, at what is heard, and at what passes by way of
    /// this home for a little longer.
    var deadline: Instant? {
        let fences = nodes.values.lazy.compactMap(\.due).min()
        let others = adoptions.values.map(\.until) + guests.lost.values.compactMap(\.until)
        let own = [fences, moves.deadline, hearing.deadline, detours.deadline]
        return (own.compactMap(\.self) + others).min()
    }
}

// Commands to places.
extension ControlPlane {
    /// Participants that connect elsewhere than at their room's home; `nil` without a cluster.
    var places: Places? {
        get { life.places }
        _modify { yield &life.places }
    }

    /// Number of the link thread among the workers.
    var linkThread: Int { setup.workers + 1 }

    /// Sends commands to a worker of this node or of another one.
    mutating func tell(_ worker: Int, _ commands: [WorkerCommand]) {
        guard let name = shared.remote?.name(of: worker) else {
            guard worker < shared.remote?.first ?? .max else { return }
            return output.append(.commands(worker: worker, commands))
        }
        guard places?.nodes[name.node]?.isConnected == true else {
            places?.nodes[name.node]?.returning?.commands.append((worker, commands))
            return
        }
        let remote = commands.flatMap { remoteCommands($0, at: worker) }
        for part in PlaceCommands(worker: name.worker, place: worker, commands: remote).parts {
            output.append(.place(node: name.node, asHome: true, part))
        }
    }

    /// Whether a fence has to wait for a worker: not for one of a node whose leases are over.
    func mayPass(_ worker: Int) -> Bool {
        guard let first = shared.remote?.first, worker >= first else { return true }
        guard let name = shared.remote?.name(of: worker), let node = places?.nodes[name.node]
        else { return false }
        return node.isConnected || node.isLeaving
    }

    /// Notes that a fence is sent to another node's worker.
    mutating func awaitPlace(_ worker: Int, _ epoch: UInt64) {
        guard let name = shared.remote?.name(of: worker), mayPass(worker) else { return }
        let now = shared.now
        places?.nodes[name.node]?.awaited[epoch, default: [:]][worker] = now
    }

    private func remoteCommands(_ command: WorkerCommand, at worker: Int) -> [RemoteCommand] {
        let commands = [remoteCommand(command, at: worker)].compactMap(\.self)
        guard case .configure(let id, _) = command,
            let name = rooms.owners[.transport(worker: worker, id)],
            let saved = rooms[name]?.room
                .savedNegotiation(of: Room.TransportLocation(worker: worker, id: id))
        else { return commands }
        return commands + [.keep(id, room: name, JSON.compact(saved))]
    }

    private func remoteCommand(_ command: WorkerCommand, at worker: Int) -> RemoteCommand? {
        switch command {
        case .configure(let id, let configuration): .configure(id, configuration)
        case .close(let id): .close(id)
        case .gate(let id, let open): .gate(id, open: open)
        case .bind(let id, let binding): .bind(id, binding)
        case .limit(let id, let cap): .limit(id, cap)
        case .feature(let id, let isFeatured): .feature(id, isFeatured)
        case .mirror(let mirror):
            .mirror(
                mirror,
                of: remotePlace(mirror.home.worker),
                via: parent(of: mirror.configuration.id, at: worker)
            )
        case .unmirror(let id): .unmirror(id)
        case .relay(let id, let targets):
            .relay(id, to: targets, at: targets.map { remotePlace($0.worker) })
        case .explain(let slot, let token): .explain(slot, token: token)
        case .reportTransports(let ids, let token): .reportTransports(ids, token: token)
        case .fence(let epoch): .fence(epoch: epoch)
        case .resume(let id, let wasConnected): .resume(id, wasConnected: wasConnected)
        case .hold, .endResumption, .postponeResumption, .tap, .report, .link, .lease: nil
        }
    }

    private func remotePlace(_ worker: Int) -> RemotePlace {
        shared.remote?.name(of: worker)
            ?? RemotePlace(node: setup.node ?? "", worker: worker)
    }

    /// Adds what follows from an operation's commands for other nodes: orders to the link thread.
    mutating func route(
        _ commands: [Int: [WorkerCommand]],
        of operation: inout Operation
    ) -> [Int: [WorkerCommand]] {
        guard var places, let first = shared.remote?.first else { return commands }
        self.places = nil
        var result = commands
        var links: [WorkerCommand] = []
        for (worker, list) in commands.sorted(by: { $0.key < $1.key }) where worker < first {
            var routed = RoutedCommands()
            for command in list {
                routeOwn(command, in: worker, &places, &routed)
            }
            result[worker] = routed.worker
            links += routed.link
            operation.freed += routed.freed
        }
        for (worker, list) in commands.sorted(by: { $0.key < $1.key }) where worker >= first {
            var routed = RoutedCommands()
            for command in list { routeOnward(command, to: worker, &places, &routed) }
            links += routed.link
            operation.freed += routed.freed
        }
        if !links.isEmpty { result[linkThread, default: []] += links }
        self.places = places
        return result
    }

    /// Name of a publication of this home's rooms; another life of it has others.
    func name(of target: RelayTarget) -> StreamName {
        StreamName(home: "\(setup.node ?? "")/\(setup.bootID)", target: target)
    }

    /// Routes a command of this home's own rooms.
    private mutating func routeOwn(
        _ command: WorkerCommand,
        in worker: Int,
        _ places: inout Places,
        _ routed: inout RoutedCommands
    ) {
        switch command {
        case .configure(let id, let configuration):
            places.forget(of: id, in: worker, keeping: configuration.publications, &routed)
            places.routes.configure(configuration.publications, in: worker, &routed)
        case .close(let id): places.forget(of: id, in: worker, keeping: [], &routed)
        case .gate(let id, let open):
            places.routes.gate(RelayTarget(worker: worker, publication: id), open: open, &routed)
        case .unmirror(let id):
            places.routes.unmirror(RelayTarget(worker: worker, publication: id), &routed)
        case .relay(let id, let targets):
            let target = RelayTarget(worker: worker, publication: id)
            return places.routes.relay(
                target,
                as: name(of: target),
                to: targets.map { target in
                    shared.remote?.name(of: target.worker).map { .at($0.node) } ?? .here(target)
                },
                at: shared.now,
                &shared.identifiers,
                &routed
            )
        case .mirror(let mirror):
            guard let origin = shared.remote?.name(of: mirror.home.worker) else { break }
            let made = places.routes.mirror(
                mirror,
                in: worker,
                of: name(of: mirror.home),
                at: origin.node,
                via: nil,
                &shared.identifiers,
                &routed
            )
            if let made { routed.worker.append(.mirror(made)) }
            return
        case .hold(_, let target):
            if shared.remote?.name(of: target.worker) != nil { return }
        case .bind, .limit, .feature, .resume, .endResumption, .postponeResumption, .tap, .link,
            .lease, .report, .reportTransports, .explain, .fence:
            break
        }
        routed.worker.append(command)
    }
}

extension Places {
    /// Forgets the publications of a transport that it no longer has.
    fileprivate mutating func forget(
        of id: TransportID,
        in worker: Int,
        keeping kept: [PublicationConfiguration],
        _ routed: inout RoutedCommands
    ) {
        let transport = Room.TransportLocation(worker: worker, id: id)
        let now = Set(kept.map(\.id))
        for gone in (publications[transport] ?? []).subtracting(now) {
            routes.forget(RelayTarget(worker: worker, publication: gone), &routed)
        }
        publications[transport] = now.isEmpty ? nil : now
    }
}
