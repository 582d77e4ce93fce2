import Contract
import JSON
import RTP

// Events of rooms that move to another node, or end with theirs.
extension Cluster {
    /// Tells that a room has ended with its node, which can no longer do so.
    mutating func announceLoss(of room: String, from record: RoomRecord) {
        guard record.home != setup.name else { return tellLoss(of: room) }
        guard peers[record.home, default: Peer()].closed.insert(room).inserted else { return }
        tellLoss(of: room)
    }

    /// Tells this node's connections that a room has ended with its node.
    mutating func tellLoss(of room: String) {
        let line = lossLine(of: room)
        let wanting = subscriptions.inOrder { $0.interest.includes(RoomClosed.event, in: room) }
        for (connection, _) in wanting { tellLoss(line, of: room, to: connection) }
        for connection in Array(subscriptions.keys) {
            subscriptions[connection]?.awaited[room] = nil
        }
        forgetPositions(of: room)
    }

    private mutating func tellLoss(_ line: [UInt8], of room: String, to connection: UInt64) {
        // It is answered by that, and has missed nothing of a new room of this name.
        subscriptions[connection]?.params.since?[RoomID(room)] = nil
        deliver(line, to: connection)
    }

    private func lossLine(of room: String) -> [UInt8] {
        IPCEvent.encoded(
            RoomClosed(reason: Self.lossReason),
            room: RoomID(room),
            seq: Int64(clamping: lastSeen(room) ?? 0) &+ 1,
            time: unixTime,
            audience: .all
        )
    }

    /// Ends those of a node's rooms that have ended with its life and have no record, and forgets
    /// how far connections have come in those whose end their records tell.
    ///
    /// Nobody else tells the ends of the former: that life was to do so, or the registry lost them.
    /// While a snapshot is read, the record of such a room may still come. Unless the node
    /// `isGone`, its next life is asked for the room's events instead.
    mutating func endRooms(of node: NodeName, isGone: Bool) {
        var lost: Set<String> = []
        for connection in Array(subscriptions.keys) {
            let rooms = (subscriptions[connection]?.positions ?? [:])
                .filter { $0.value.node == node && directory[$0.key]?.record.ended ?? true }.keys
            for room in rooms {
                if directory[room] == nil {
                    lost.insert(room)
                } else {
                    subscriptions[connection]?.positions[room] = nil
                }
            }
        }
        guard isGone || registry.snapshot == nil else { return }
        for room in lost.sorted() { endRoom(room, of: node) }
    }

    /// Tells the end of a node's room to those who have come to some point of its events there.
    private mutating func endRoom(_ room: String, of node: NodeName) {
        let isTold = peers[node]?.closed.remove(room) != nil
        let line = lossLine(of: room)
        for (connection, subscription) in subscriptions.inOrder(
            where: { $0.positions[room]?.node == node })
        {
            subscriptions[connection]?.positions[room] = nil
            guard !isTold, subscription.interest.includes(RoomClosed.event, in: room) else {
                continue
            }
            tellLoss(line, of: room, to: connection)
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
        // A home that takes back what it has let go tells all that follows to the same connections.
        guard old.home != new.home || old.boot != new.boot else { return }
        let hasEnded = peers[old.home]?.closed.remove(room) != nil
        // A room that goes on elsewhere has a higher term; the name was free meanwhile.
        guard new.term > old.term else { return forgetPositions(of: room) }
        if !hasEnded {
            goOn(with: room, at: new.home, now)
        } else if new.home == setup.name {
            holds[room]?.hasEnded = true
        } else {
            // Its end came before its home was lost.
            peers[new.home, default: Peer()].closed.insert(room)
        }
    }

    /// Goes on with a room's events at its new home, behind the last one that each connection has.
    ///
    /// Questions to a former home do not count, should it answer later.
    mutating func goOn(with room: String, at home: NodeName, _ now: Instant) {
        for connection in Array(subscriptions.keys) {
            subscriptions[connection]?.awaited[room] = nil
            subscriptions[connection]?.positions[room]?.node = home
        }
        let last = lastSeen(room)
        guard home != setup.name else { return }
        peers[home, default: Peer()].closed.remove(room)
        guard let boot = members[home]?.record.boot else { return }
        let asking = subscriptions.inOrder {
            $0.interest.includes(room: room) && $0.attachments[home]?.isAsked == true
        }
        for (connection, subscription) in asking {
            // It gets the events of the node's other rooms already.
            let seen = Int64(clamping: subscription.positions[room]?.seq ?? last ?? 0)
            ask(home, for: [RoomID(room): seen], connection, boot: boot, at: now)
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
}
