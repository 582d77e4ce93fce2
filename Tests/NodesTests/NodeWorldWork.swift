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
            execute(request, connection, node)
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
        case .log(true, let text, _): node.warnings.append(text)
        case .trust(let fingerprints): node.trusted = fingerprints
        case .log: break
        }
    }

    private func connect(_ node: Node, _ other: NodeName, _ fingerprint: String) {
        guard let peer = nodes[other], !peer.isDead, (peer.stoppedUntil ?? now) <= now,
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

    private static func event(_ name: String, _ room: String, _ seq: UInt64) -> String {
        """
        {"method":"event","params":{"event":"\(name)","room":"\(room)","seq":\(seq)}}
        """
    }

    private func tell(_ name: String, _ room: String, _ node: Node) {
        let seq = (node.rooms[room] ?? 0) + 1
        node.rooms[room] = seq
        let text = Self.event(name, room, seq)
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
            let resync = Line(text: Self.event(Resync.event, room.rawValue, 0))
            let missed = node.journal[room.rawValue]?.dropFirst(Int(seq)) ?? [resync]
            for line in missed { replay.append(("replayed", Array(line.text.utf8))) }
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
