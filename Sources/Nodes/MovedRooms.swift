import Contract
import JSON
import RTP

// Events of rooms that move to another node, or end with theirs.
extension Cluster {
    /// Tells that a room has ended with its node, which can no longer do so.
    mutating func announceLoss(of room: String, from record: RoomRecord) {
        if record.home == setup.name {
            return tellLoss(of: room, after: leftPositions.removeValue(forKey: room) ?? 0)
        }
        guard peers[record.home, default: Peer()].closed.insert(room).inserted else { return }
        tellLoss(of: room, after: peers[record.home]?.positions.removeValue(forKey: room) ?? 0)
    }

    /// Tells this node's connections that a room has ended with its node.
    mutating func tellLoss(of room: String, after last: UInt64) {
        let line = IPCEvent.encoded(
            RoomClosed(reason: Self.lossReason),
            room: RoomID(room),
            seq: Int64(clamping: last) &+ 1,
            time: unixTime,
            audience: .all
        )
        for (connection, subscription) in subscriptions
        where subscription.interest.includes(RoomClosed.event, in: room) {
            deliver(line, to: connection)
        }
    }

    /// Notes that a room has got another home, or another life of its home.
    mutating func noteMove(
        of room: String,
        from old: RoomRecord,
        to new: RoomRecord,
        at now: Instant
    ) {
        guard old != new else { return }
        if old.home == setup.name, let seen = leftPositions.removeValue(forKey: room) {
            return noteMove(of: room, to: new.home, seen: seen, at: now)
        }
        // A home that takes back what it has let go tells all that follows to the same connections.
        guard old.home != new.home || old.boot != new.boot else { return }
        let seen = peers[old.home]?.positions.removeValue(forKey: room) ?? 0
        let hasEnded = peers[old.home]?.closed.remove(room) != nil
        if !hasEnded {
            noteMove(of: room, to: new.home, seen: seen, at: now)
        } else if new.home != setup.name {
            // Its end came before its home was lost.
            peers[new.home, default: Peer()].closed.insert(room)
        }
    }

    /// Goes on with a room's events at its new home, behind the one that came last.
    mutating func noteMove(of room: String, to home: NodeName, seen: UInt64, at now: Instant) {
        guard home != setup.name else {
            positions[room] = seen
            return
        }
        peers[home, default: Peer()].positions[room] = seen
        peers[home]?.closed.remove(room)
        for (connection, subscription) in subscriptions
        where subscription.interest.includes(room: room)
            && subscription.attachments[home]?.isAsked == true
        {
            askForMissed(room, connection, at: home, at: now)
        }
    }

    /// Returns a room that this node has let go and nobody has taken, if a subscription asks for
    /// its missed events.
    func leftRoom(of call: PendingCall) -> String? {
        guard call.request.method == EventsSubscribe.name,
            let asked = call.request.params["since"], case .object(let since) = asked
        else { return nil }
        return since.keys.sorted().first { room in
            guard holds[room] == nil, let record = directory[room]?.record, !record.ended,
                let orphan = orphans[room]
            else { return false }
            return record.isLeft == true && isOwn(record)
                && lastActive.milliseconds(since: orphan.since) < Self.linkMilliseconds / 2
        }
    }

    /// Leaves the rooms that have gone from here to other homes out of another node's question for
    /// missed events: it asks there next.
    func withoutMovedRooms(_ call: PendingCall) -> PendingCall {
        guard call.request.method == EventsSubscribe.name,
            case .object(let params) = call.request.params,
            let asked = params["since"], case .object(let since) = asked
        else { return call }
        let rest = since.filter { room, _ in
            holds[room] != nil || directory[room]?.record.ended != false
        }
        var call = call
        call.request.params = .object(params.merging(["since": .object(rest)]) { $1 })
        return call
    }

    /// Asks a node for the events of a room that a connection has missed; it gets the others of
    /// that node already.
    private mutating func askForMissed(
        _ room: String,
        _ connection: UInt64,
        at node: NodeName,
        at now: Instant
    ) {
        guard let subscription = subscriptions[connection], let member = members[node] else {
            return
        }
        var params = EventsSubscribe.Params(
            rooms: subscription.params.rooms,
            events: subscription.params.events
        )
        params.since = [RoomID(room): Int64(clamping: peers[node]?.positions[room] ?? 0)]
        var outgoing = subscribing(connection, params, boot: member.record.boot, at: now)
        outgoing.movedRoom = room
        peers[node]?.awaited[room, default: []].insert(connection)
        let number = nextNumber()
        peers[node]?.add(outgoing, number)
        sendCall(number, to: node)
    }
}
