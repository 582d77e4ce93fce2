import Contract
import JSON
import Nodes
import RTP
import TestSupport

/// Nodes, their registry and links in virtual time.
final class NodeWorld {
    /// A node with the part of a control plane that matters here: rooms, their events, replies.
    final class Node {
        let name: NodeName
        var cluster: Cluster
        let boot: String
        /// `seq` of each room's last event.
        var rooms: [String: UInt64] = [:]
        var journal: [String: [Line]] = [:]
        var interests: [UInt64: Set<String>?] = [:]
        /// Lines that each connection was sent.
        var inbox: [UInt64: [Line]] = [:]
        /// Joins that were executed, by room and participant.
        var joins: [String: Int] = [:]
        var isDead = false
        var stoppedUntil: Instant?
        var isCut = false
        /// Whether the broker's silence was told.
        var knowsAway = false
        var warnings: [String] = []

        init(_ name: NodeName, boot: String, rooms: [String], at now: Instant) {
            self.name = name
            self.boot = boot
            for room in rooms { self.rooms[room] = 1 }
            let setup = NodeSetup(
                name: name,
                boot: boot,
                link: "127.0.0.1:7000",
                fingerprint: "\(name)-\(boot)"
            )
            cluster = Cluster(setup, rooms: rooms, at: now)
        }
    }

    struct Line: Hashable {
        var text: String
        var isReply: Bool { text.contains("\"id\"") }
    }

    private struct Entry {
        var revision: UInt64
        var value: [UInt8]?
    }

    private(set) var now = Instant(nanoseconds: 1_000_000_000)
    private(set) var nodes: [NodeName: Node] = [:]
    var random: SeededRandom
    private var store: [String: Entry] = [:]
    private var revision: UInt64 = 0
    private var timers: [(due: Instant, order: Int, run: () -> Void)] = []
    private var order = 0
    private var linked: Set<Set<NodeName>> = []
    private var lives = 0
    /// Whether the broker answers nobody.
    var isAway = false
    /// Chance that the answer to a write is lost, and that the write is lost with it.
    var lossChance = 0.0

    init(_ names: [String], seed: UInt64 = 1) {
        random = SeededRandom(seed: seed)
        for name in names { start(name) }
        run(milliseconds: 300)
    }

    static func name(_ text: String) -> NodeName {
        guard let name = NodeName(rawValue: text) else { preconditionFailure("a node's name") }
        return name
    }

    subscript(name: String) -> Node {
        guard let node = nodes[Self.name(name)] else { preconditionFailure("no such node") }
        return node
    }

    /// Starts a node, in place of one that has died.
    func start(_ text: String, boot: String? = nil, rooms: [String] = []) {
        let name = Self.name(text)
        lives += 1
        let boot = boot ?? "life\(lives)"
        nodes[name] = Node(name, boot: boot, rooms: rooms, at: now)
        after(milliseconds: 20) { [self] in snapshot(name) }
    }

    /// Ends a node without a word.
    func kill(_ text: String) {
        self[text].isDead = true
        breakLinks(of: Self.name(text), after: 1)
    }

    /// Lets a node stand still.
    func stop(_ text: String, milliseconds: Int64) {
        self[text].stoppedUntil = now.advanced(milliseconds: milliseconds)
        breakLinks(of: Self.name(text), after: 3_000)
    }

    func breakLinks(of name: NodeName, after milliseconds: Int64 = 0) {
        after(milliseconds: milliseconds) { [self] in
            for pair in linked where pair.contains(name) {
                linked.remove(pair)
                for node in pair { report(node, pair.first { $0 != node }, isUp: false) }
            }
        }
    }

    private func report(_ name: NodeName, _ other: NodeName?, isUp: Bool) {
        guard let other else { return }
        deliver(to: name) { [self] in $0.cluster.linkChanged(other, isUp: isUp, at: now) }
    }

    /// Loses everything that the registry holds; revisions begin again.
    func wipe() {
        store = [:]
        revision = 0
        for name in nodes.keys { after(milliseconds: 100) { [self] in snapshot(name) } }
    }

    /// Lets the broker answer nobody until `isAway` is taken back by this call.
    func setAway(_ away: Bool) {
        isAway = away
        guard !away else {
            return after(milliseconds: 3_000) { [self] in
                guard isAway else { return }
                for node in nodes.values { tellAway(node) }
            }
        }
        for name in nodes.keys { after(milliseconds: 100) { [self] in snapshot(name) } }
    }

    /// Takes one node's way to the broker, or gives it back.
    func cut(_ text: String, _ isCut: Bool) {
        self[text].isCut = isCut
        if isCut {
            after(milliseconds: 3_000) { [self] in tellAway(self[text]) }
        } else {
            after(milliseconds: 100) { [self] in snapshot(Self.name(text)) }
        }
    }

    private func tellAway(_ node: Node) {
        node.knowsAway = true
        deliver(to: node.name) { [self] in $0.cluster.receive(.away("silence"), at: now) }
    }

    func after(milliseconds: Int64, _ run: @escaping () -> Void) {
        order += 1
        timers.append((now.advanced(milliseconds: milliseconds), order, run))
    }

    func run(milliseconds: Int64) {
        let end = now.advanced(milliseconds: milliseconds)
        while now < end {
            now = now.advanced(milliseconds: 1)
            var due = timers.filter { $0.due <= now }
            timers.removeAll { $0.due <= now }
            due.sort { ($0.due, $0.order) < ($1.due, $1.order) }
            for timer in due { timer.run() }
            for node in nodes.values where !node.isDead && (node.stoppedUntil ?? now) <= now {
                node.cluster.expire(at: now)
                carryOut(node)
            }
        }
    }

    /// Hands something to a node when it is awake.
    private func deliver(to name: NodeName, _ body: @escaping (Node) -> Void) {
        guard let node = nodes[name], !node.isDead else { return }
        if let until = node.stoppedUntil, until > now {
            return after(milliseconds: until.milliseconds(since: now) + 1) { [self] in
                deliver(to: name, body)
            }
        }
        body(node)
        carryOut(node)
    }
}

// Calls.
extension NodeWorld {
    /// Makes a call at a node; its reply comes into the connection's inbox.
    func call(
        _ node: String,
        _ method: String,
        _ params: JSON,
        id: Int64 = 1,
        connection: UInt64 = 1
    ) {
        let request = IPCRequest(id: .integer(id), method: method, params: params)
        deliver(to: Self.name(node)) { [self] node in
            node.cluster.receive(request, line: request.encoded(), from: connection, at: now)
        }
    }

    /// Replies of a connection, in short: `ok`, or the reason of a refusal.
    func replies(_ node: String, connection: UInt64 = 1) -> [String] {
        (self[node].inbox[connection] ?? []).filter(\.isReply).map { line in
            guard let json = try? JSON(parsing: Array(line.text.utf8)) else { return "no JSON" }
            if case .string(let reason) = json["error"]?["data"]?["reason"] { return reason }
            if case .string(let node) = json["result"]?["node"] { return "ok at \(node)" }
            return "ok"
        }
    }

    /// Events of a connection, as `name room seq`.
    func events(_ node: String, connection: UInt64 = 1) -> [String] {
        (self[node].inbox[connection] ?? []).filter { !$0.isReply }.map { line in
            guard let json = try? JSON(parsing: Array(line.text.utf8)), let params = json["params"],
                case .string(let name) = params["event"], case .string(let room) = params["room"],
                case .integer(let seq) = params["seq"]
            else { return line.text }
            return "\(name) \(room) \(seq)"
        }
    }

    /// Nodes that have a room.
    func homes(of room: String) -> [String] {
        nodes.values.filter { !$0.isDead && $0.rooms[room] != nil }.map(\.name.rawValue).sorted()
    }

    /// Home in the registry's record, if there is one.
    func recordedHome(of room: String) -> String? {
        let key = "rooms.\(RoomKey.token(of: room))"
        guard let value = store[key]?.value, let json = try? JSON(parsing: value),
            case .string(let home) = json["home"], json["ended"] != true
        else { return nil }
        return home
    }
}

// The registry.
extension NodeWorld {
    private func canReach(_ node: Node) -> Bool { !isAway && !node.isCut }

    private func snapshot(_ name: NodeName) {
        guard let node = nodes[name], canReach(node) else { return }
        node.knowsAway = false
        let entries = store.sorted { $0.value.revision < $1.value.revision }
        deliver(to: name) { [self] node in
            node.cluster.receive(.snapshot, at: now)
            for (key, entry) in entries {
                let update = RegistryUpdate.entry(
                    key: key,
                    revision: entry.revision,
                    value: entry.value
                )
                node.cluster.receive(update, at: now)
            }
            node.cluster.receive(.complete, at: now)
        }
    }

    private func carry(_ request: RegistryRequest, for node: Node) {
        let delay = random.pick(1...4)
        switch request {
        case .watchAgain: after(milliseconds: 10) { [self] in snapshot(node.name) }
        case .read(let number, let key):
            after(milliseconds: delay) { [self] in
                guard canReach(node) else { return fail(number, node) }
                let outcome =
                    store[key].map {
                        RegistryOutcome.found(revision: $0.revision, value: $0.value)
                    } ?? .absent
                answer(number, outcome, node)
            }
        case .write(let number, let key, let value, let condition):
            after(milliseconds: delay) { [self] in
                guard canReach(node) else { return fail(number, node) }
                if random.chance(lossChance) {
                    if random.chance(0.5) { _ = write(key, value, condition) }
                    return fail(number, node)
                }
                answer(number, write(key, value, condition), node)
            }
        }
    }

    private func write(
        _ key: String,
        _ value: [UInt8]?,
        _ condition: WriteCondition
    ) -> RegistryOutcome {
        switch condition {
        case .always: break
        case .absent: guard store[key] == nil else { return .conflict }
        case .revision(let expected):
            guard store[key]?.revision == expected else { return .conflict }
        }
        revision += 1
        store[key] = Entry(revision: revision, value: value)
        let update = RegistryUpdate.entry(key: key, revision: revision, value: value)
        for node in nodes.values where !node.knowsAway {
            after(milliseconds: 3) { [self] in
                guard canReach(node) else { return }
                deliver(to: node.name) { [self] in $0.cluster.receive(update, at: now) }
            }
        }
        return .stored(revision: revision)
    }

    private func answer(_ number: UInt64, _ outcome: RegistryOutcome, _ node: Node) {
        after(milliseconds: 1) { [self] in
            // The answer is for this life alone.
            guard nodes[node.name] === node else { return }
            deliver(to: node.name) { [self] in
                $0.cluster.receive(.outcome(outcome, of: number), at: now)
            }
        }
    }

    private func fail(_ number: UInt64, _ node: Node) {
        after(milliseconds: 1_500) { [self] in answer(number, .failed, node) }
    }
}

// What nodes want done.
extension NodeWorld {
    private func carryOut(_ node: Node) {
        while true {
            let output = node.cluster.takeOutput()
            guard !output.isEmpty else { return }
            for item in output { carryOut(item, of: node) }
        }
    }

    private func carryOut(_ item: ClusterOutput, of node: Node) {
        switch item {
        case .registry(let request): carry(request, for: node)
        case .line(let connection, let line): put(line, connection, node)
        case .execute(let request, let connection, let created):
            execute(request, connection, node)
            guard let created else { return }
            node.cluster.conclude(created, exists: node.rooms[created] != nil, at: now)
        case .connect(let other, _, let fingerprint):
            after(milliseconds: 2) { [self] in connect(node, other, fingerprint) }
        case .disconnect(let other):
            linked.remove([node.name, other])
            report(other, node.name, isUp: false)
        case .send(let other, let message):
            guard linked.contains([node.name, other]) else { return }
            // Over the wire and back, as the codec is part of it.
            let frame = message.encoded().dropFirst(4)
            after(milliseconds: 1) { [self] in
                guard linked.contains([node.name, other]) else { return }
                guard let message = LinkMessage(frame: frame) else { return }
                deliver(to: other) { [self] in
                    $0.cluster.receive(message, from: node.name, at: now)
                }
            }
        case .endRoom(let room): close(room, node)
        case .log(true, let text, _): node.warnings.append(text)
        case .log, .trust: break
        }
    }

    private func connect(_ node: Node, _ other: NodeName, _ fingerprint: String) {
        guard let peer = nodes[other], !peer.isDead, (peer.stoppedUntil ?? now) <= now,
            "\(other)-\(peer.boot)" == fingerprint
        else { return report(node.name, other, isUp: false) }
        if linked.insert([node.name, other]).inserted { report(other, node.name, isUp: true) }
        report(node.name, other, isUp: true)
    }

    private func put(_ line: [UInt8], _ connection: UInt64, _ node: Node) {
        node.inbox[connection, default: []].append(
            Line(text: String(decoding: line, as: UTF8.self))
        )
    }

    private func execute(_ request: IPCRequest, _ connection: UInt64, _ node: Node) {
        var room = ""
        if case .string(let text) = request.params["room"] { room = text }
        switch request.method {
        case "room.create":
            guard node.rooms[room] == nil else {
                return refuse(request, connection, .alreadyExists(RoomID(room)), node)
            }
            node.rooms[room] = node.journal[room].map { UInt64($0.count) } ?? 0
            reply(request, connection, node)
            tell(RoomCreated.event, room, node)
        case "events.subscribe": subscribe(request, connection, node)
        case _ where node.rooms[room] == nil:
            refuse(request, connection, .noSuchRoom(RoomID(room)), node)
        case "room.close":
            reply(request, connection, node)
            close(room, node)
        case "participant.join":
            if case .string(let who) = request.params["participant"] {
                node.joins["\(room)/\(who)", default: 0] += 1
            }
            reply(request, connection, node)
            tell("participant.joined", room, node)
        default: reply(request, connection, node)
        }
    }

    private func reply(_ request: IPCRequest, _ connection: UInt64, _ node: Node) {
        struct Result: Encodable { var node: String }
        let line = IPCReply.encoded(id: request.id, result: Result(node: node.name.rawValue))
        answer(line, connection, node)
    }

    private func refuse(
        _ request: IPCRequest,
        _ connection: UInt64,
        _ error: IPCError,
        _ node: Node
    ) {
        answer(IPCReply.encoded(id: request.id, error: error), connection, node)
    }

    private func answer(_ line: [UInt8], _ connection: UInt64, _ node: Node) {
        if Cluster.isGuest(connection) {
            node.cluster.answer(connection, line)
        } else {
            put(line, connection, node)
        }
    }

    private func close(_ room: String, _ node: Node) {
        guard node.rooms[room] != nil else { return }
        tell(RoomClosed.event, room, node)
        node.rooms[room] = nil
        node.cluster.roomEnded(room, at: now)
    }

    private func tell(_ name: String, _ room: String, _ node: Node) {
        let seq = (node.rooms[room] ?? 0) + 1
        node.rooms[room] = seq
        let text = """
            {"method":"event","params":{"event":"\(name)","room":"\(room)","seq":\(seq)}}
            """
        node.journal[room, default: []].append(Line(text: text))
        for (connection, rooms) in node.interests where rooms?.contains(room) != false {
            put(Array(text.utf8), connection, node)
        }
        node.cluster.send(Array(text.utf8), name, in: room, seq: seq)
    }

    private func subscribe(_ request: IPCRequest, _ connection: UInt64, _ node: Node) {
        guard let params = try? request.params(EventsSubscribe.Params.self) else { return }
        var replay: [(name: String, line: [UInt8])] = []
        for (room, seq) in params.since ?? [:] {
            for line in (node.journal[room.rawValue] ?? []).dropFirst(Int(seq)) {
                replay.append(("replayed", Array(line.text.utf8)))
            }
        }
        reply(request, connection, node)
        if Cluster.isGuest(connection) {
            node.cluster.subscribed(connection, replay: replay, positions: node.rooms)
        } else {
            node.interests[connection] = params.rooms.map { Set($0.map(\.rawValue)) }
            for event in replay { put(event.line, connection, node) }
        }
    }
}
