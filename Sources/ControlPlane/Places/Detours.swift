import RTP
import Rooms
import WorkerInterface

/// Media that passes by way of this home, as the node with the viewers does not hear the node with
/// the publisher.
struct Detours {
    /// A mirror at another node that is fed from here.
    private struct Fed {
        var home: RelayTarget
        var node: String
    }

    /// Nodes that a node does not hear, as it says.
    private var unheard: [String: Set<String>] = [:]
    private var fed: [RelayTarget: Fed] = [:]

    /// Whether a node gets the media of another one directly.
    func hears(_ node: String, _ origin: String) -> Bool {
        unheard[node]?.contains(origin) != true
    }

    mutating func set(_ nodes: Set<String>, unheardBy node: String) {
        unheard[node] = nodes.isEmpty ? nil : nodes
    }

    func feeds(_ mirror: RelayTarget) -> Bool { fed[mirror] != nil }

    mutating func feed(_ mirror: RelayTarget, of home: RelayTarget, at node: String) {
        fed[mirror] = Fed(home: home, node: node)
    }

    /// Feeds a mirror no longer; returns the publication that it is of, if it was fed.
    mutating func stop(_ mirror: RelayTarget) -> RelayTarget? {
        fed.removeValue(forKey: mirror)?.home
    }

    /// Nodes to which a publication goes on from here.
    func nodes(of home: RelayTarget) -> Set<String> {
        Set(fed.values.filter { $0.home == home }.map(\.node))
    }
}

extension ControlPlane {
    /// Lets the media of nodes that another one does not hear pass by way of this one, and that of
    /// others come directly again.
    mutating func take(_ message: UnheardNodes, of node: String, at now: Instant) {
        guard message.isValid, places?.nodes[node]?.isConnected == true else { return }
        setTime(now)
        places?.detours.set(Set(message.unheard), unheardBy: node)
        log(message, of: node)
        let workers = Set(shared.remote?.places(at: node) ?? [])
        for name in rooms.names.sorted() {
            var commands: [Int: [WorkerCommand]] = [:]
            for (worker, mirror) in rooms[name]?.room.mirrors(in: workers) ?? []
            where isWayDue(mirror, to: worker, at: node) {
                commands[worker, default: []].append(.mirror(mirror))
            }
            if !commands.isEmpty { commit(Operation(at: now), commands, in: name) }
        }
    }

    private mutating func log(_ message: UnheardNodes, of node: String) {
        guard !message.unheard.isEmpty else {
            let fields = [("node", node)]
            return output.append(.log(.info, "node hears the others again", fields))
        }
        let fields = [("node", node), ("unheard", message.unheard.joined(separator: " "))]
        output.append(.log(.warning, "node does not hear others", fields))
    }

    /// Whether a mirror is to get its media another way than now.
    private func isWayDue(_ mirror: Mirror, to worker: Int, at node: String) -> Bool {
        guard let places, let origin = shared.remote?.name(of: mirror.home.worker)?.node else {
            return false
        }
        let target = RelayTarget(worker: worker, publication: mirror.configuration.id)
        return places.detours.hears(node, origin) == places.detours.feeds(target)
    }

    /// Node by way of which a mirror at another node gets its media; `nil` if it comes directly.
    func parent(of mirror: PublicationID, at worker: Int) -> String? {
        let target = RelayTarget(worker: worker, publication: mirror)
        return places?.detours.feeds(target) == true ? setup.node : nil
    }

    /// Adds what follows from a command for another node's worker: orders for media that passes by
    /// way of this one.
    mutating func routeOnward(
        _ command: WorkerCommand,
        to worker: Int,
        _ places: inout Places,
        _ routed: inout RoutedCommands
    ) {
        switch command {
        case .mirror(let mirror):
            guard let node = shared.remote?.name(of: worker)?.node,
                let origin = shared.remote?.name(of: mirror.home.worker)?.node
            else { break }
            let target = RelayTarget(worker: worker, publication: mirror.configuration.id)
            guard !places.detours.hears(node, origin) else {
                return stopFeeding(target, &places, &routed)
            }
            places.detours.feed(target, of: mirror.home, at: node)
            let isPassed = places.routes.passOn(
                mirror,
                of: name(of: mirror.home),
                at: origin,
                to: places.detours.nodes(of: mirror.home),
                &shared.identifiers,
                &routed
            )
            if !isPassed { stopFeeding(target, &places, &routed) }
        case .unmirror(let id):
            stopFeeding(RelayTarget(worker: worker, publication: id), &places, &routed)
        case .gate(let id, let open):
            let home = RelayTarget(worker: worker, publication: id)
            guard !places.detours.nodes(of: home).isEmpty else { break }
            places.routes.gate(name(of: home), open: open, &routed)
        case .configure, .close, .bind, .limit, .feature, .resume, .endResumption, .relay, .hold,
            .tap, .link, .lease, .report, .reportTransports, .explain, .fence:
            break
        }
    }

    private func stopFeeding(
        _ mirror: RelayTarget,
        _ places: inout Places,
        _ routed: inout RoutedCommands
    ) {
        guard let home = places.detours.stop(mirror) else { return }
        places.routes.passOn(name(of: home), to: places.detours.nodes(of: home), &routed)
    }

    /// Ends what passes by way of this node of a room that was let go, without a word to the nodes
    /// whose mirrors `commands` would have ended.
    mutating func endDetours(of commands: [Int: [WorkerCommand]], at now: Instant) {
        guard var places else { return }
        var routed = RoutedCommands()
        for (worker, list) in commands.sorted(by: { $0.key < $1.key }) {
            for case .unmirror(let id) in list {
                stopFeeding(RelayTarget(worker: worker, publication: id), &places, &routed)
            }
        }
        self.places = places
        // The link thread executes its commands in order, and nothing else uses these handles.
        for resource in routed.freed { release(resource) }
        guard !routed.link.isEmpty else { return }
        output.append(.commands(worker: linkThread, routed.link))
    }
}
