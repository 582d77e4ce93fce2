import CKernel
import Contract
import ControlPlane
import Kernel
import Links
import Nodes
import RTP
import Registry
import Sockets
import WorkerInterface

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
                control.show(nodes, at: now)
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
            if let orders = cluster?.takeOrders(), !orders.isEmpty {
                workers[setup.workers + 1].commands.post(orders.map { .link($0) })
            }
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
            carryOut(at: now)
            let node = cluster?.core.caller(of: connection)?.rawValue
            cluster?.withCore { $0.executes(connection) }
            control.receive(request, from: id, by: node, at: now, unixTime: unixTime)
            carryOut(at: now)
            cluster?.withCore { $0.executes(nil) }
            guard let room else { return }
            let exists = control.hasRoom(room)
            cluster?.withCore { $0.conclude(room, exists: exists, at: now) }
        case .line(let connection, let line): reply(ConnectionID(rawValue: connection), line)
        case .registry(let request): cluster?.registry.post([request])
        case .connect(let node, let address, let fingerprint):
            cluster?.links.connect(to: node, at: address, fingerprint)
        case .disconnect(let node): cluster?.disconnect(node)
        case .send(let node, let message): cluster?.links.send(message, to: node)
        case .trust(let fingerprints): cluster?.links.trust(fingerprints)
        case .linked(let node):
            let facts = control.placeFacts
            cluster?.withCore { $0.describe(facts, to: node) }
        case .described(let node, let facts):
            control.takePlaceFacts(facts, of: node.rawValue, at: now)
            carryOut(at: now)
        case .place(let node, let isFromHome, let message):
            if isFromHome {
                let boot = cluster?.core.boot(of: node) ?? ""
                control.receivePlaceCommands(message, from: node.rawValue, boot, at: now)
            } else {
                control.receivePlaceEvents(message, from: node.rawValue, at: now)
            }
            carryOut(at: now)
        case .placesLost(let node, let asHome):
            if asHome {
                control.losePlaces(at: node.rawValue, at: now)
            } else {
                control.endGuests(of: node.rawValue, at: now)
            }
            carryOut(at: now)
        case .placesDisowned(let node):
            control.disownPlaces(at: node.rawValue, at: now)
            carryOut(at: now)
        case .homeLost(let node, let boot):
            control.orphanGuests(of: node.rawValue, boot, at: now)
            carryOut(at: now)
        case .homeReturned(let node, let boot):
            control.orphanGuests(of: node.rawValue, boot, isBack: true, at: now)
            carryOut(at: now)
        case .prolong(let node): cluster?.prolongLease(of: node)
        case .endRoom(let room):
            control.end(room, reason: Cluster.lossReason, at: now)
            carryOut(at: now)
        case .abandonRoom(let room):
            control.abandon(room, at: now)
            carryOut(at: now)
        case .letGo(let room):
            control.handOver(room, at: now)
            carryOut(at: now)
        case .nodes(let nodes): control.show(nodes, at: now)
        case .adopt(let room): adopt(room, at: now)
        case .cancelAdoption(let room): control.cancelAdoption(of: room)
        case .event(let room, let seq, let name, let line):
            let event = EventLine(name: name, line: line)
            ipc.event(event, in: room)
            share(event, in: room, seq: seq, at: now)
        case .log(let isWarning, let message, let fields):
            let pairs = fields.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
            let cause = pairs.map(\.1).joined(separator: " ")
            log.log(isWarning ? .warning : .info, message, cause: cause, pairs)
        }
    }

    /// Goes on with a room of a lost node.
    private mutating func adopt(_ room: TakenRoom, at now: Instant) {
        guard let clock = room.contents.clock, let home = room.contents.home else { return }
        let journaled = JournaledRoom(
            name: room.name,
            of: home.rawValue,
            room.contents.boot,
            records: room.contents.records,
            instant: clock.instant,
            unixTime: clock.unixTime
        )
        carryOut(at: now)
        let unixTime = Double(kernel_unix_nanoseconds()) / 1e9
        control.adopt(journaled, at: now, unixTime: unixTime)
        carryOut(at: now)
    }

    /// Tells the cluster which rooms of lost nodes go on here, before what happens in them next.
    mutating func noteAdopted(at now: Instant) {
        for (room, last) in control.takeAdopted() {
            let kept = control.keptEvents(of: room).filter { $0.seq <= last ?? 0 }
            let events = kept.map { (seq: $0.seq, name: $0.event.name, line: $0.event.line) }
            cluster?.withCore { $0.adopted(room, last: last, events: events, at: now) }
        }
    }

    /// Saves changes in the rooms' journals, those without secrets.
    mutating func journal(_ changes: [SavedChange], at now: Instant) {
        guard cluster != nil else { return }
        var rooms: [String: [JournalRecord]] = [:]
        for change in changes {
            guard let shared = change.journaled else { continue }
            let record = JournalRecord(key: shared.key, value: shared.value)
            rooms[change.scope, default: []].append(record)
        }
        cluster?.withCore { core in
            for (room, records) in rooms.sorted(by: { $0.key < $1.key }) {
                core.save(records, of: room, at: now)
            }
        }
    }

    /// Passes an event on, in a cluster when what it tells is in the room's journal.
    mutating func tell(_ event: EventLine, in room: String, seq: UInt64, at now: Instant) {
        guard cluster != nil else { return ipc.event(event, in: room) }
        cluster?.withCore { $0.tell(event.line, event.name, in: room, seq: seq, at: now) }
    }

    /// Sends a message about participants to another node.
    mutating func sendPlace(_ message: [UInt8], to node: String, asHome: Bool) {
        guard let name = NodeName(rawValue: node) else { return }
        let unixTime = Double(kernel_unix_nanoseconds()) / 1e9
        cluster?.withCore { core in
            core.unixTime = unixTime
            core.send(message, to: name, asHome: asHome)
        }
    }

    /// Takes this node out of the registry, so that nobody waits for its lease to end.
    mutating func leaveCluster(by deadline: Instant?) {
        cluster?.withCore { $0.endJournals() }
        carryOutCluster(at: .monotonic())
        cluster?.withCore { $0.leave() }
        carryOutCluster(at: .monotonic())
        let left = deadline.map { max(0, $0.milliseconds(since: .monotonic())) }
        let wait = min(left ?? Self.leaveMilliseconds, Self.leaveMilliseconds)
        cluster?.registry.finish(milliseconds: Int(wait))
    }

    /// Longest wait for the registry at the end.
    private static let leaveMilliseconds: Int64 = 500

    /// Takes a reply of the control plane.
    mutating func answer(_ id: ConnectionID, _ line: [UInt8], at now: Instant) {
        if Cluster.isGuest(id.rawValue) {
            cluster?.withCore { $0.answer(id.rawValue, line, at: now) }
        } else {
            reply(id, line)
        }
    }

    /// Passes an event of a room on to other nodes, and notes the end of the room.
    private mutating func share(
        _ event: EventLine,
        in room: String,
        seq: UInt64,
        at now: Instant
    ) {
        let hasEnded = event.name == RoomClosed.event && !control.hasRoom(room)
        cluster?.withCore { core in
            core.send(event.line, event.name, in: room, seq: seq)
            if hasEnded { core.roomEnded(room, at: now) }
        }
    }

    /// Subscribes a connection here, or one of another node.
    mutating func subscribe(_ id: ConnectionID, _ interest: EventInterest, _ replay: [MissedEvent])
    {
        let missed = replay.map {
            ReplayedEvent(room: $0.room, seq: $0.seq, name: $0.event.name, line: $0.event.line)
        }
        guard let told = cluster?.core.replayed(missed) else {
            return ipc.subscribe(id, interest, replay: replay.map(\.event))
        }
        guard Cluster.isGuest(id.rawValue) else {
            let events = told.map { EventLine(name: $0.name, line: $0.line) }
            return ipc.subscribe(id, interest, replay: events)
        }
        let positions = control.positions
        cluster?.withCore { core in
            core.subscribed(id.rawValue, replay: told, positions: positions)
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
