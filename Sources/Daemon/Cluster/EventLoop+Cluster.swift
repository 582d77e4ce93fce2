import CKernel
import Contract
import ControlPlane
import Kernel
import Links
import Nodes
import RTP
import Registry
import Sockets

// The loop's part in a cluster: calls go to the room's node, and events come from there.
extension EventLoop {
    /// Takes one line of a connection; the control plane or another node answers it.
    mutating func receive(_ line: [UInt8], from id: ConnectionID, at now: Instant) {
        let unixTime = Double(kernel_unix_nanoseconds()) / 1e9
        guard cluster != nil else {
            return control.receive(line, from: id, at: now, unixTime: unixTime)
        }
        do throws(IPCRefusal) {
            let request = try IPCRequest(line: line)
            if request.method == NodeList.name, let nodes = cluster?.core.list(at: now) {
                control.show(nodes)
            }
            cluster?.withCore { $0.receive(request, line: line, from: id.rawValue, at: now) }
            carryOutCluster(at: now)
        } catch {
            reply(id, error.encoded())
        }
    }

    /// Serves a descriptor of the cluster.
    mutating func serveCluster(
        _ token: PollerToken,
        _ readiness: Poller.Readiness,
        at now: Instant
    ) {
        switch token {
        case .registry: cluster?.takeUpdates(at: now)
        case .linkListener: cluster?.links.accept(with: poller, Self.token, at: now)
        case .link(let id): cluster?.links.serve(id, readiness, at: now)
        case .listener, .signals, .http, .upgrade, .worker, .connection: break
        }
        carryOutCluster(at: now)
    }

    /// Does what is due of the cluster.
    mutating func expireCluster(at now: Instant) {
        guard cluster != nil else { return }
        let unixTime = Double(kernel_unix_nanoseconds()) / 1e9
        cluster?.note(control, at: now)
        cluster?.withCore { core in
            core.unixTime = unixTime
            core.expire(at: now)
        }
        cluster?.links.expire(with: poller, Self.token, at: now)
        carryOutCluster(at: now)
        cluster?.links.flush(with: poller, Self.token)
        carryOutCluster(at: now)
    }

    /// Carries out the cluster's work until there is no more.
    mutating func carryOutCluster(at now: Instant) {
        while true {
            cluster?.takeNews(at: now)
            guard let output = cluster?.withCore({ $0.takeOutput() }), !output.isEmpty else {
                return
            }
            for item in output { carryOut(item, at: now) }
        }
    }

    private mutating func carryOut(_ item: ClusterOutput, at now: Instant) {
        switch item {
        case .execute(let request, let connection, let room):
            let id = ConnectionID(rawValue: connection)
            let unixTime = Double(kernel_unix_nanoseconds()) / 1e9
            control.receive(request, from: id, at: now, unixTime: unixTime)
            carryOut(at: now)
            guard let room else { return }
            let exists = control.hasRoom(room)
            cluster?.withCore { $0.conclude(room, exists: exists, at: now) }
        case .line(let connection, let line): reply(ConnectionID(rawValue: connection), line)
        case .registry(let request): cluster?.registry.post([request])
        case .connect(let node, let address, let fingerprint):
            cluster?.links.connect(to: node, at: address, fingerprint)
        case .disconnect(let node): cluster?.links.disconnect(node)
        case .send(let node, let message): cluster?.links.send(message, to: node)
        case .trust(let fingerprints): cluster?.links.trust(fingerprints)
        case .endRoom(let room):
            control.end(room, reason: Cluster.lossReason, at: now)
            carryOut(at: now)
        case .log(let isWarning, let message, let fields):
            let pairs = fields.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
            let cause = pairs.map(\.1).joined(separator: " ")
            log.log(isWarning ? .warning : .info, message, cause: cause, pairs)
        }
    }

    /// Takes this node out of the registry, so that nobody waits for its lease to end.
    mutating func leaveCluster() {
        cluster?.withCore { $0.leave() }
        carryOutCluster(at: .monotonic())
        cluster?.registry.finish(milliseconds: Self.leaveMilliseconds)
    }

    /// Longest wait for the registry at the end.
    private static let leaveMilliseconds = 100

    /// Takes a reply of the control plane.
    mutating func answer(_ id: ConnectionID, _ line: [UInt8]) {
        if Cluster.isGuest(id.rawValue) {
            cluster?.withCore { $0.answer(id.rawValue, line) }
        } else {
            reply(id, line)
        }
    }

    /// Passes an event of a room on to other nodes, and notes the end of the room.
    mutating func share(_ event: EventLine, in room: String, seq: UInt64, at now: Instant) {
        guard cluster != nil else { return }
        let hasEnded = event.name == RoomClosed.event && !control.hasRoom(room)
        cluster?.withCore { core in
            core.send(event.line, event.name, in: room, seq: seq)
            if hasEnded { core.roomEnded(room, at: now) }
        }
    }

    /// Subscribes a connection here, or one of another node.
    mutating func subscribe(_ id: ConnectionID, _ events: EventInterest, _ replay: [EventLine]) {
        guard Cluster.isGuest(id.rawValue) else { return subscribeHere(id, events, replay) }
        let positions = control.positions
        cluster?.withCore { core in
            core.subscribed(
                id.rawValue,
                replay: replay.map { ($0.name, $0.line) },
                positions: positions
            )
        }
    }

    /// Registers the cluster's descriptors.
    static func watch(
        _ cluster: ClusterService.Opening,
        with poller: borrowing Poller
    ) throws(SystemError) {
        let registry = PollerToken.registry.rawValue
        try poller.add(cluster.registry.updates.descriptor, for: .readable, token: registry)
        let listener = PollerToken.linkListener.rawValue
        try poller.add(cluster.links.descriptor, for: .readable, token: listener)
    }

    private static func token(of link: UInt64) -> UInt64 { PollerToken.link(link).rawValue }
    private static var token: (UInt64) -> UInt64 { { token(of: $0) } }
}
