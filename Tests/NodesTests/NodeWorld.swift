import Contract
import Foundation
import JSON
import Nodes
import RTP
import TestSupport

/// Nodes, their registry and links in virtual time.
final class NodeWorld {
    /// Seeds of the histories with faults: 8, 20 with `SFUD_SEEDS=full`, or as many as
    /// `SFUD_NODE_SEEDS` says; `SFUD_NODE_SEED` is a single one.
    static let seeds: [UInt64] = {
        let environment = ProcessInfo.processInfo.environment
        if let one = environment["SFUD_NODE_SEED"].flatMap(UInt64.init) { return [one] }
        let told = environment["SFUD_NODE_SEEDS"].flatMap(UInt64.init)
        return Array(1...max(1, told ?? Extent.count(20, short: 8)))
    }()
    /// Seeds of histories that have found something: in 986 a call that waited for a takeover came
    /// again under another number, and was executed twice.
    static let found: [UInt64] = [986]

    /// A node with the part of a control plane that matters here: rooms, their events, replies.
    final class Node {
        let name: NodeName
        var cluster: Cluster
        let boot: String
        /// `seq` of each room's last event.
        var rooms: [String: UInt64] = [:]
        var journal: [String: [UInt64: Line]] = [:]
        /// Journaled records of each room.
        var records: [String: [String: [UInt8]]] = [:]
        var interests: [UInt64: Set<String>?] = [:]
        /// Lines that each connection was sent.
        var inbox: [UInt64: [Line]] = [:]
        /// Joins that were executed and not given up unsaved and unanswered, by room and
        /// participant.
        var joins: [String: Int] = [:]
        var isDead = false
        var stoppedUntil: Instant?
        /// News that came while the node stood still, in order.
        var pending: [(Node) -> Void] = []
        var isCut = false
        var trusted: [String: NodeName] = [:]
        /// Whether the broker's silence was told.
        var knowsAway = false
        /// Messages about participants that came, and sessions that ended.
        var placed: [String] = []
        /// Nodes that have told facts over the present links.
        var described: Set<NodeName> = []
        var warnings: [String] = []
        /// Keys that it has written or removed in the registry, in order.
        var written: [String] = []

        init(_ name: NodeName, boot: String, rooms: [String: UInt64], at now: Instant) {
            self.name = name
            self.boot = boot
            self.rooms = rooms
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
        /// Name of the event.
        var name: String {
            guard let json = try? JSON(parsing: Array(text.utf8)),
                case .string(let name) = json["params"]?["event"]
            else { return "" }
            return name
        }
    }

    /// Connection that made a call.
    struct Asker {
        var node: Node
        var connection: UInt64
        var id: Int64
    }

    struct Entry {
        var revision: UInt64
        var value: [UInt8]?
    }

    struct Message {
        var sequence: UInt64
        var bytes: [UInt8]
    }

    private(set) var now = Instant(nanoseconds: 1_000_000_000)
    private(set) var nodes: [NodeName: Node] = [:]
    /// All lives of all nodes.
    private(set) var everybody: [Node] = []
    var random: SeededRandom
    var store: [String: Entry] = [:]
    var revision: UInt64 = 0
    /// Messages of the rooms' journals.
    var journals: [String: [Message]] = [:]
    var sequence: UInt64 = 0
    private var timers: [(due: Instant, order: Int, run: () -> Void)] = []
    private var order = 0
    var linked: Set<Set<NodeName>> = []
    /// Pairs that cannot connect.
    var severed: Set<Set<NodeName>> = []
    private var lives = 0
    /// Last caller of each join, by room and participant.
    private(set) var askers: [String: Asker] = [:]
    /// Whether the broker answers nobody.
    var isAway = false
    /// Nodes whose writes about rooms get lost.
    var forgotten: Set<NodeName> = []
    /// Milliseconds by which news of the registry come later to a node.
    var lag: [NodeName: Int64] = [:]
    /// Chance that the answer to a write is lost, and that the write is lost with it.
    var lossChance = 0.0

    init(_ names: [String], seed: UInt64 = 1) {
        random = SeededRandom(seed: seed)
        for name in names { start(name) }
        run(milliseconds: 300)
    }

    /// All nodes, by name, so that runs are reproducible.
    var sorted: [Node] { nodes.sorted { $0.key < $1.key }.map(\.value) }

    static func name(_ text: String) -> NodeName {
        guard let name = NodeName(rawValue: text) else { preconditionFailure("a node's name") }
        return name
    }

    subscript(name: String) -> Node {
        guard let node = nodes[Self.name(name)] else { preconditionFailure("no such node") }
        return node
    }

    /// Starts a node, in place of one that has died.
    func start(_ text: String, boot: String? = nil, rooms: [String: UInt64] = [:]) {
        let name = Self.name(text)
        lives += 1
        let boot = boot ?? "life\(lives)"
        let node = Node(name, boot: boot, rooms: rooms, at: now)
        nodes[name] = node
        everybody.append(node)
        after(milliseconds: 20) { [self] in snapshot(name) }
    }

    /// Ends a node's process and starts it again with its calls kept; its connections are gone.
    func restart(_ text: String) {
        let former = self[text]
        kill(text)
        start(text, boot: former.boot, rooms: former.rooms)
        let node = self[text]
        node.journal = former.journal
        node.records = former.records
        // A control plane that has restored its rooms saves all of them again.
        for (room, records) in former.records.sorted(by: { $0.key < $1.key }) {
            node.cluster.save(
                records.map { JournalRecord(key: $0.key, value: $0.value) },
                of: room,
                at: now
            )
        }
        carryOut(node)
    }

    /// Ends a node without a word.
    func kill(_ text: String) {
        self[text].isDead = true
        breakLinks(of: Self.name(text), after: 1)
    }

    /// Ends a node as its process ends on request; its rooms end with it.
    func leave(_ text: String) {
        deliver(to: Self.name(text)) { [self] node in
            for room in node.rooms.keys.sorted() { close(room, node) }
            carryOut(node)
            node.cluster.endJournals()
            carryOut(node)
            node.cluster.leave()
        }
        after(milliseconds: 30) { [self] in kill(text) }
    }

    /// Lets a node stand still.
    func stop(_ text: String, milliseconds: Int64) {
        self[text].stoppedUntil = now.advanced(milliseconds: milliseconds)
        breakLinks(of: Self.name(text), after: 3_000)
    }

    func breakLinks(of name: NodeName, after milliseconds: Int64 = 0) {
        after(milliseconds: milliseconds) { [self] in
            for other in nodes.keys.sorted() where linked.remove([name, other]) != nil {
                report(name, other, isUp: false)
                report(other, name, isUp: false)
            }
        }
    }

    func report(_ name: NodeName, _ other: NodeName?, isUp: Bool) {
        guard let other else { return }
        deliver(to: name) { [self] in $0.cluster.linkChanged(other, isUp: isUp, at: now) }
    }

    /// Loses everything that the registry holds; revisions begin again, or go on.
    func wipe(revisionsGoOn: Bool = false) {
        store = [:]
        if !revisionsGoOn { revision = 0 }
        journals = [:]
        sequence = 0
        // Watches of the old bucket report nothing more.
        for node in sorted { node.knowsAway = true }
        for node in sorted { after(milliseconds: 100) { [self] in snapshot(node.name) } }
    }

    /// Lets the broker answer nobody until `isAway` is taken back by this call.
    func setAway(_ away: Bool) {
        isAway = away
        guard !away else {
            return after(milliseconds: 3_000) { [self] in
                guard isAway else { return }
                for node in sorted { tellAway(node) }
            }
        }
        for node in sorted { after(milliseconds: 100) { [self] in snapshot(node.name) } }
    }

    /// Takes one node's way to the broker, or gives it back.
    func cut(_ text: String, _ isCut: Bool) {
        self[text].isCut = isCut
        if isCut {
            after(milliseconds: 3_000) { [self] in
                if self[text].isCut { tellAway(self[text]) }
            }
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
            for node in sorted where !node.isDead && (node.stoppedUntil ?? now) <= now {
                let pending = node.pending
                node.pending = []
                for body in pending {
                    body(node)
                    carryOut(node)
                }
                node.cluster.expire(at: now)
                carryOut(node)
            }
        }
    }

    /// Hands something to a node when it is awake.
    func deliver(to name: NodeName, _ body: @escaping (Node) -> Void) {
        guard let node = nodes[name], !node.isDead else { return }
        guard (node.stoppedUntil ?? now) <= now, node.pending.isEmpty else {
            return node.pending.append(body)
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
        if method == "participant.join", case .string(let room) = params["room"],
            case .string(let who) = params["participant"]
        {
            askers["\(room)/\(who)"] = Asker(node: self[node], connection: connection, id: id)
        }
        deliver(to: Self.name(node)) { [self] node in
            node.cluster.receive(request, line: request.encoded(), from: connection, at: now)
        }
    }

    /// Replies of a connection, in short: `ok`, or the reason of a refusal.
    func replies(_ node: String, connection: UInt64 = 1) -> [String] {
        (self[node].inbox[connection] ?? []).filter(\.isReply).map { line in
            guard let json = try? JSON(parsing: Array(line.text.utf8)) else { return "no JSON" }
            if case .string(let reason) = json["error"]?["data"]?["reason"] { return reason }
            let suffix = json["result"]?["durable"] == false ? ", not durable" : ""
            if case .string(let node) = json["result"]?["node"] { return "ok at \(node)\(suffix)" }
            return "ok\(suffix)"
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
        guard let json = record(of: room), case .string(let home) = json["home"],
            json["ended"] != true
        else { return nil }
        return home
    }

    /// Term in the registry's record, if there is one.
    func recordedTerm(of room: String) -> Int64? {
        guard case .integer(let term) = record(of: room)?["term"] else { return nil }
        return term
    }

    private func record(of room: String) -> JSON? {
        store["rooms.\(RoomKey.token(of: room))"]?.value.flatMap { try? JSON(parsing: $0) }
    }
}
