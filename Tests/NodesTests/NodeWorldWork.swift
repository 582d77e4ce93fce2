import Contract
import JSON
import Nodes
import RTP

// Work that nodes ask for.
extension NodeWorld {
    func carryOut(_ node: Node) {
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
            node.cluster.executes(connection)
            execute(request, connection, node)
            node.cluster.executes(nil)
            guard let created else { return }
            node.cluster.conclude(created, exists: node.rooms[created] != nil, at: now)
        case .connect(let other, _, let fingerprint):
            after(milliseconds: 2) { [self] in connect(node, other, fingerprint) }
        case .disconnect(let other):
            guard linked.remove([node.name, other]) != nil else { return }
            report(other, node.name, isUp: false)
            report(node.name, other, isUp: false)
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
        case .abandonRoom(let room): giveUp(room, node)
        case .letGo(let room):
            node.placed.append("let go \(room)")
            giveUp(room, node)
        case .adopt(let taken): adopt(taken, node)
        case .event(let room, let seq, let name, let line):
            for (connection, rooms) in node.interests where rooms?.contains(room) != false {
                put(line, connection, node)
            }
            node.cluster.send(line, name, in: room, seq: seq)
            let hasEnded = name == RoomClosed.event && node.rooms[room] == nil
            if hasEnded { node.cluster.roomEnded(room, at: now) }
        case .log(true, let text, _): node.warnings.append(text)
        case .trust(let fingerprints): node.trusted = fingerprints
        case .place(let other, let isFromHome, let payload):
            let side = isFromHome ? "home" : "guest"
            node.placed.append("\(side) \(other) \(String(decoding: payload, as: UTF8.self))")
        case .placesDisowned(let other):
            let isKnown = node.described.contains(other)
            node.placed.append(isKnown ? "disowned \(other)" : "disowned \(other) without facts")
        case .placesLost(let other, let asHome):
            node.placed.append("lost \(other) \(asHome ? "as home" : "as guest")")
        case .homeLost(let other, let boot): node.placed.append("lost home \(other) \(boot)")
        case .homeReturned(let other, let boot):
            node.placed.append("home back \(other) \(boot)")
        case .prolong(let other): node.placed.append("prolong \(other)")
        case .linked(let other):
            node.described.remove(other)
            node.cluster.describe([], to: other)
        case .described(let other, _): node.described.insert(other)
        case .cancelAdoption, .log, .nodes: break
        }
    }

    private func connect(_ node: Node, _ other: NodeName, _ fingerprint: String) {
        if !severed.contains([node.name, other]), nodes[other]?.isDead == true {
            deliver(to: node.name) { $0.cluster.linkRefused(other) }
        }
        guard !severed.contains([node.name, other]),
            let peer = nodes[other], !peer.isDead, (peer.stoppedUntil ?? now) <= now,
            "\(other)-\(peer.boot)" == fingerprint,
            peer.trusted["\(node.name)-\(node.boot)"] == node.name
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
            node.rooms[room] = node.journal[room]?.keys.max() ?? 0
            tell(RoomCreated.event, room, node, ["r": []]) { [self] in
                reply(request, connection, node)
            }
        case "events.subscribe": subscribe(request, connection, node)
        case _ where node.rooms[room] == nil:
            refuse(request, connection, .noSuchRoom(RoomID(room)), node)
        case "room.close":
            close(room, node) { [self] in reply(request, connection, node) }
        case "participant.join":
            guard case .string(let who) = request.params["participant"] else { return }
            node.joins["\(room)/\(who)", default: 0] += 1
            tell("participant.joined", room, node, ["p/\(who)": [1]]) { [self] in
                reply(request, connection, node)
            }
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
            node.cluster.answer(connection, line, at: now)
        } else {
            put(line, connection, node)
        }
    }

    func close(_ room: String, _ node: Node, reply: () -> Void = {}) {
        guard node.rooms[room] != nil else { return }
        var removed: [String: [UInt8]?] = [:]
        for key in (node.records[room] ?? [:]).keys { removed[key] = .some(nil) }
        let seq = (node.rooms[room] ?? 0) + 1
        node.rooms[room] = nil
        node.records[room] = nil
        tell(RoomClosed.event, room, seq, node, removed, reply: reply)
    }

    /// Forgets a room that others have, with its joins that no journal has and nobody was told of.
    ///
    /// These have not happened, so that the calls go to the room's next home, which may be this
    /// node once more. A call that was answered goes nowhere, and one that was executed twice stays
    /// so, whatever becomes of the room.
    private func giveUp(_ room: String, _ node: Node) {
        forget(room, node)
        let saved = JournalContents((journals[room] ?? []).map(\.bytes))?.records ?? [:]
        let unsaved = node.joins.keys.filter { key in
            let parts = key.split(separator: "/").map(String.init)
            return parts.first == room && saved["p/\(parts.last ?? "")"] == nil
        }
        // Answers that are on their way over a link count. No node has the room before they come.
        after(milliseconds: 2) { [self] in
            for join in unsaved where node.joins[join] == 1 && !isAnswered(join) {
                node.joins[join] = nil
            }
        }
    }

    /// Whether the connection that asked for a join has an answer.
    private func isAnswered(_ join: String) -> Bool {
        guard let asker = askers[join] else { return false }
        return (asker.node.inbox[asker.connection] ?? []).contains { line in
            guard line.isReply, let json = try? JSON(parsing: Array(line.text.utf8)) else {
                return false
            }
            return json["id"] == JSON.integer(asker.id)
        }
    }

    /// Forgets a room that goes on elsewhere.
    private func forget(_ room: String, _ node: Node) {
        node.rooms[room] = nil
        node.records[room] = nil
        node.journal[room] = nil
    }

    private func adopt(_ taken: TakenRoom, _ node: Node) {
        let records = taken.contents.records
        let room = taken.name
        forget(room, node)
        guard records["r"] != nil else {
            return node.cluster.adopted(room, last: nil, events: [], at: now)
        }
        for (key, value) in records where key.hasPrefix("e/") {
            guard let seq = UInt64(key.dropFirst(2)) else { continue }
            let line = Line(text: String(decoding: value, as: UTF8.self))
            node.journal[room, default: [:]][seq] = line
        }
        node.records[room] = records
        node.rooms[room] = node.journal[room]?.keys.max() ?? 0
        let events = (node.journal[room] ?? [:]).sorted { $0.key < $1.key }.map { seq, line in
            (seq: seq, name: line.name, line: Array(line.text.utf8))
        }
        node.cluster.adopted(room, last: node.rooms[room], events: events, at: now)
        node.cluster.save(
            records.map { JournalRecord(key: $0.key, value: $0.value) },
            of: room,
            at: now
        )
        tell("participant.moveWanted", room, node)
    }

    private static func event(_ name: String, _ room: String, _ seq: UInt64, _ node: Node) -> String
    {
        """
        {"method":"event","params":{"event":"\(name)","room":"\(room)","seq":\(seq),\
        "of":"\(node.name)"}}
        """
    }

    private func tell(
        _ name: String,
        _ room: String,
        _ node: Node,
        _ changes: [String: [UInt8]?] = [:],
        reply: () -> Void = {}
    ) {
        let seq = (node.rooms[room] ?? 0) + 1
        node.rooms[room] = seq
        tell(name, room, seq, node, changes, reply: reply)
    }

    /// Saves the changes and the event, replies, and tells the event.
    private func tell(
        _ name: String,
        _ room: String,
        _ seq: UInt64,
        _ node: Node,
        _ changes: [String: [UInt8]?],
        reply: () -> Void
    ) {
        let text = Self.event(name, room, seq, node)
        node.journal[room, default: [:]][seq] = Line(text: text)
        var changes = changes
        if node.rooms[room] != nil { changes["e/\(seq)"] = Array(text.utf8) }
        for (key, value) in changes where node.rooms[room] != nil {
            node.records[room, default: [:]][key] = value
        }
        let records = changes.sorted { $0.key < $1.key }.map {
            JournalRecord(key: $0.key, value: $0.value)
        }
        node.cluster.save(records, of: room, at: now)
        reply()
        node.cluster.tell(Array(text.utf8), name, in: room, seq: seq, at: now)
    }

    private func subscribe(_ request: IPCRequest, _ connection: UInt64, _ node: Node) {
        guard let params = try? request.params(EventsSubscribe.Params.self) else { return }
        var replay: [ReplayedEvent] = []
        for (room, seq) in (params.since ?? [:]).sorted(by: { $0.key.rawValue < $1.key.rawValue }) {
            let kept = node.journal[room.rawValue] ?? [:]
            let last = kept.keys.max() ?? 0
            let resync = Line(text: Self.event(Resync.event, room.rawValue, last, node))
            var missed = kept.filter { $0.key > seq }
            if last < seq || last == 0 { missed = [last: resync] }
            for (number, line) in missed.sorted(by: { $0.key < $1.key }) {
                let name = line.name
                let isWanted = params.events?.contains { $0.matches(name) } ?? true
                guard isWanted || name == Resync.event else { continue }
                let event = ReplayedEvent(
                    room: room.rawValue,
                    seq: number,
                    name: name,
                    line: Array(line.text.utf8)
                )
                replay.append(event)
            }
        }
        replay = node.cluster.replayed(replay)
        reply(request, connection, node)
        if Cluster.isGuest(connection) {
            node.cluster.subscribed(connection, replay: replay, positions: node.rooms)
        } else {
            let rooms: Set<String>? = params.rooms.map { Set($0.map(\.rawValue)) }
            node.interests.updateValue(rooms, forKey: connection)
            for event in replay { put(event.line, connection, node) }
        }
    }
}
