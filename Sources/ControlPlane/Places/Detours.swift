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
    /// Those whose media comes another way now, with the times up to which they go on.
    private var lingering: [RelayTarget: Instant] = [:]
    /// Numbers of mirrors that are fed, by publication and node.
    private var counts: [RelayTarget: [String: Int]] = [:]

    /// Time for which media goes on by way of this home when it comes another way: until that has
    /// begun.
    static let lingerMilliseconds: Int64 = 1_000

    /// Whether a node gets the media of another one directly.
    func hears(_ node: String, _ origin: String) -> Bool {
        unheard[node]?.contains(origin) != true
    }

    /// Sets the nodes that a node does not hear; returns whether that is news.
    mutating func set(_ nodes: Set<String>, unheardBy node: String) -> Bool {
        guard unheard[node] ?? [] != nodes else { return false }
        unheard[node] = nodes.isEmpty ? nil : nodes
        return true
    }

    /// Whether a mirror is to get its media from here.
    func feeds(_ mirror: RelayTarget) -> Bool { fed[mirror] != nil && lingering[mirror] == nil }

    mutating func feed(_ mirror: RelayTarget, of home: RelayTarget, at node: String) {
        if fed[mirror] == nil { counts[home, default: [:]][node, default: 0] += 1 }
        fed[mirror] = Fed(home: home, node: node)
        lingering[mirror] = nil
    }

    /// Lets a mirror get its media from here for a little longer, if it does.
    mutating func linger(_ mirror: RelayTarget, until end: Instant) {
        guard feeds(mirror) else { return }
        lingering[mirror] = end
    }

    /// Feeds a mirror no longer; returns the publication that it is of, if it was fed.
    mutating func stop(_ mirror: RelayTarget) -> RelayTarget? {
        lingering[mirror] = nil
        guard let ended = fed.removeValue(forKey: mirror) else { return nil }
        let left = (counts[ended.home]?[ended.node] ?? 1) - 1
        counts[ended.home]?[ended.node] = left > 0 ? left : nil
        if counts[ended.home]?.isEmpty == true { counts[ended.home] = nil }
        return ended.home
    }

    /// Returns the publication that a mirror is of, if it is fed from here.
    func home(of mirror: RelayTarget) -> RelayTarget? { fed[mirror]?.home }

    /// Nodes to which a publication goes on from here.
    func nodes(of home: RelayTarget) -> Set<String> { Set((counts[home] ?? [:]).keys) }

    /// Time at which the next mirror is fed no longer.
    var deadline: Instant? { lingering.values.min() }

    /// Mirrors that are fed no longer, in a fixed order.
    func due(at now: Instant) -> [RelayTarget] {
        lingering.filter { $0.value <= now }.keys
            .sorted { ($0.worker, $0.publication.index) < ($1.worker, $1.publication.index) }
    }
}

extension ControlPlane {
    /// Lets the media of nodes that another one does not hear pass by way of this one, and that of
    /// others come directly again.
    mutating func take(_ message: UnheardNodes, of node: String, at now: Instant) {
        guard places?.nodes[node]?.isConnected == true, message.isValid else { return }
        // Some may be nodes that this one has yet to meet.
        let unheard = Set(message.unheard).subtracting([node, setup.node ?? ""])
        guard places?.detours.set(unheard, unheardBy: node) == true else { return }
        setTime(now)
        log(unheard, of: node)
        let workers = Set(shared.remote?.places(at: node) ?? [])
        for name in rooms.names(withTransportsIn: workers) {
            var commands: [Int: [WorkerCommand]] = [:]
            for (worker, mirror) in rooms[name]?.room.mirrors(in: workers) ?? []
            where isWayDue(mirror, to: worker, at: node) {
                commands[worker, default: []].append(.mirror(mirror))
            }
            if !commands.isEmpty { commit(Operation(at: now), commands, in: name) }
        }
    }

    private mutating func log(_ unheard: Set<String>, of node: String) {
        guard !unheard.isEmpty else {
            let fields = [("node", node)]
            return output.append(.log(.info, "node hears the others again", fields))
        }
        let fields = [("node", node), ("unheard", unheard.sorted().joined(separator: " "))]
        output.append(.log(.warning, "node does not hear others", fields))
    }

    /// Whether a mirror is to get its media another way than now.
    private func isWayDue(_ mirror: Mirror, to worker: Int, at node: String) -> Bool {
        guard let places, let origin = shared.remote?.name(of: mirror.home.worker)?.node else {
            return false
        }
        let target = RelayTarget(worker: worker, publication: mirror.configuration.id)
        return places.isDirect(from: origin, to: node) == places.detours.feeds(target)
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
        case .mirror(let mirror): routeOnward(mirror, to: worker, &places, &routed)
        case .unmirror(let id):
            stopFeeding(RelayTarget(worker: worker, publication: id), &places, &routed)
        case .gate(let id, let open):
            let target = RelayTarget(worker: worker, publication: id)
            guard let home = places.detours.home(of: target) else { break }
            places.routes.gate(name(of: home), open: open, &routed)
        case .configure, .close, .bind, .limit, .feature, .resume, .endResumption,
            .postponeResumption, .relay, .hold,
            .tap, .link, .lease, .report, .reportTransports, .explain, .fence:
            break
        }
    }

    private mutating func routeOnward(
        _ mirror: Mirror,
        to worker: Int,
        _ places: inout Places,
        _ routed: inout RoutedCommands
    ) {
        guard let node = shared.remote?.name(of: worker)?.node,
            let origin = shared.remote?.name(of: mirror.home.worker)?.node
        else { return }
        let target = RelayTarget(worker: worker, publication: mirror.configuration.id)
        guard !places.isDirect(from: origin, to: node) else {
            // Until the other way has begun.
            let end = shared.now.advanced(milliseconds: Detours.lingerMilliseconds)
            return places.detours.linger(target, until: end)
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
        guard !isPassed else { return }
        let fields = [("node", node), ("origin", origin)]
        output.append(.log(.warning, "no handle for media of another node", fields))
        stopFeeding(target, &places, &routed)
    }

    private func stopFeeding(
        _ mirror: RelayTarget,
        _ places: inout Places,
        _ routed: inout RoutedCommands
    ) {
        guard let home = places.detours.stop(mirror) else { return }
        places.routes.passOn(name(of: home), to: places.detours.nodes(of: home), &routed)
    }

    /// Lets what passes by way of this node of a room that was let go end when the next home has
    /// had the time to find another way; `commands` would have ended the mirrors of it.
    mutating func endDetours(of commands: [Int: [WorkerCommand]], by end: Instant) {
        for (worker, list) in commands {
            for case .unmirror(let id) in list {
                let target = RelayTarget(worker: worker, publication: id)
                places?.detours.linger(target, until: end)
            }
        }
    }

    /// Ends what has come another way for long enough.
    mutating func expireDetours(at now: Instant) {
        guard let due = places?.detours.deadline, due <= now, var places else { return }
        self.places = nil
        var routed = RoutedCommands()
        for mirror in places.detours.due(at: now) { stopFeeding(mirror, &places, &routed) }
        self.places = places
        // The link thread executes its commands in order, and nothing else uses these handles.
        for resource in routed.freed { release(resource) }
        guard !routed.link.isEmpty else { return }
        output.append(.commands(worker: linkThread, routed.link))
    }
}

extension Places {
    /// Whether the media of a node goes directly to another one: they hear each other, or the first
    /// one, of an earlier version, gives nothing to a home for others.
    fileprivate func isDirect(from origin: String, to node: String) -> Bool {
        detours.hears(node, origin) || nodes[origin]?.feedsHomes != true
    }
}
