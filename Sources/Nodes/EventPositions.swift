import Contract
import RTP

// Positions of this node's connections in the events of rooms: each gets each event once and in
// order, whichever node tells it.
extension Cluster {
    /// Returns where a subscription begins in rooms: as the caller says, or as far as the other
    /// connections have come if the room is between two homes.
    func beginning(
        of subscription: Subscription,
        after before: Subscription?,
        at now: Instant
    ) -> [String: Subscription.Position] {
        // It goes on with what the connection gets already.
        var positions: [String: Subscription.Position] = [:]
        if let before, before.interest == subscription.interest { positions = before.positions }
        for room in names(for: subscription.interest) where positions[room] == nil {
            guard let record = directory[room]?.record, !record.ended else { continue }
            let isComing = holds[room].map { $0.takesOver && !$0.exists } ?? false
            guard isComing || isOver(record, at: now), let seq = lastSeen(room) else { continue }
            positions[room] = Subscription.Position(seq: seq, node: record.home)
        }
        for (room, seq) in subscription.params.since ?? [:] {
            // A room that is not known here yet may be a new one of that name.
            guard let home = directory[room.rawValue]?.record.home else { continue }
            let position = Subscription.Position(seq: UInt64(clamping: seq), node: home)
            positions[room.rawValue] = position
        }
        return positions
    }

    /// Returns how far a connection has come in a room's events; `nil` if that is not known.
    func seen(_ room: String, by subscription: Subscription) -> UInt64? {
        // Another node has the room, and this one is about to let it go.
        if let hold = holds[room], hold.exists { return hold.told }
        return subscription.positions[room]?.seq
    }

    /// Returns how far the connection of this node has come that is ahead of the others.
    func lastSeen(_ room: String) -> UInt64? {
        subscriptions.values.compactMap { $0.positions[room]?.seq }.max()
    }

    /// Passes an event of another node on, to each connection once and in order.
    mutating func relay(
        _ line: [UInt8],
        _ name: String,
        _ room: String,
        _ seq: UInt64,
        to connections: [UInt64],
        from node: NodeName,
        at now: Instant
    ) {
        counters.eventsReceived &+= 1
        guard !room.isEmpty else {
            for connection in connections { deliver(line, to: connection) }
            return
        }
        // It has moved there, and the registry has not told it yet, or it has moved on, and the
        // node answers late: all of its events are asked for at its home.
        guard !isElsewhere(room, than: node) else {
            leftOut[room] = node
            return
        }
        if peers[node]?.closed.contains(room) == true {
            let last = lastSeen(room)
            // After the loss of a room nothing more is told of it.
            guard last != nil || name == RoomCreated.event else { return }
            // The name was given to another room before the registry told of the end of this one;
            // the events go on in number.
            if seq > last ?? 0 { peers[node]?.closed.remove(room) }
        }
        var isNew = false
        for connection in connections {
            guard !asksForGap(before: seq, name, of: room, from: node, connection, at: now),
                take(name, seq, of: room, from: node, connection)
            else { continue }
            isNew = true
            deliver(line, to: connection)
        }
        guard isNew, name == RoomClosed.event else { return }
        if directory[room]?.record.home == node {
            peers[node]?.closed.insert(room)
        } else {
            forgetPositions(of: room)
        }
    }

    /// Whether the registry says that a room is not at a node.
    private func isElsewhere(_ room: String, than node: NodeName) -> Bool {
        guard let record = directory[room]?.record, !record.ended else { return false }
        return record.home != node || record.boot != members[node]?.record.boot
    }

    /// Asks for the events before one that is not the next; returns whether it comes with them.
    ///
    /// The room was at another home for a while, and the registry has not told of it yet. A
    /// connection that gets some of the events alone does not see that. It is asked once, as the
    /// node may not have them.
    private mutating func asksForGap(
        before seq: UInt64,
        _ name: String,
        of room: String,
        from node: NodeName,
        _ connection: UInt64,
        at now: Instant
    ) -> Bool {
        guard let position = subscriptions[connection]?.positions[room], !position.isAsked,
            seq > position.seq, seq - position.seq > 1, name != Resync.event,
            subscriptions[connection]?.interest.patterns == nil,
            subscriptions[connection]?.awaited[room] == nil,
            let boot = members[node]?.record.boot
        else { return false }
        subscriptions[connection]?.positions[room]?.isAsked = true
        let seen = Int64(clamping: position.seq)
        ask(node, for: [RoomID(room): seen], connection, boot: boot, at: now)
        return true
    }

    /// Notes an event that a connection gets; returns `false` if it had it, or is to get it later.
    private mutating func take(
        _ name: String,
        _ seq: UInt64,
        of room: String,
        from node: NodeName,
        _ connection: UInt64
    ) -> Bool {
        // No copy is made of the subscription, as each event comes here.
        guard subscriptions[connection] != nil, subscriptions[connection]?.awaited[room] == nil
        else { return false }
        if let position = subscriptions[connection]?.positions[room], seq <= position.seq {
            // A new room has the name, or what the connection had seen does not count.
            let beginsAgain = name == RoomCreated.event && position.node != node
            guard beginsAgain || name == Resync.event else { return false }
        }
        // A room that is not there has no events to come.
        let isUnknown = name == Resync.event && seq == 0
        let position = Subscription.Position(seq: seq, node: node)
        subscriptions[connection]?.positions[room] = isUnknown ? nil : position
        return true
    }

    /// Takes how far the rooms of a node have come: as the messages of a link keep their order, a
    /// connection that is attached there has all events up to that, or need not get them.
    ///
    /// Not so those that it waits for, and those of rooms of which the registry has not told yet
    /// that they are there. A connection without patterns gets all events, so that its own position
    /// is exact.
    mutating func note(_ positions: [String: UInt64], of node: NodeName) {
        let known = positions.filter { room, _ in
            directory[room].map { isHome(node, $0.record) } ?? false
        }
        for connection in Array(subscriptions.keys)
        where subscriptions[connection]?.attachments[node]?.isAttached == true {
            for (room, seq) in known {
                note(seq, of: room, at: node, connection)
            }
        }
    }

    private mutating func note(
        _ seq: UInt64,
        of room: String,
        at node: NodeName,
        _ connection: UInt64
    ) {
        guard subscriptions[connection]?.awaited[room] == nil,
            let interest = subscriptions[connection]?.interest, interest.includes(room: room)
        else { return }
        if let position = subscriptions[connection]?.positions[room] {
            guard position.seq < seq, interest.patterns != nil else { return }
        }
        let position = Subscription.Position(seq: seq, node: node)
        subscriptions[connection]?.positions[room] = position
    }

    /// Forgets a room whose record is gone, once its end was told to those who want to know it.
    mutating func forgetPosition(of room: String, at node: NodeName) {
        let isTold = peers[node]?.closed.remove(room) != nil
        forgetPositions(of: room, where: { isTold || !$0.includes(RoomClosed.event, in: room) })
    }

    /// Forgets how far connections have come in a room that has ended, but those that still wait
    /// for its events.
    mutating func forgetPositions(
        of room: String,
        where isOver: (FeedInterest) -> Bool = { _ in true }
    ) {
        // Only what changes is touched: a copy would be one of all positions.
        for connection in Array(subscriptions.keys) {
            guard subscriptions[connection]?.positions[room] != nil,
                subscriptions[connection]?.awaited[room] == nil,
                let interest = subscriptions[connection]?.interest, isOver(interest)
            else { continue }
            subscriptions[connection]?.positions[room] = nil
        }
    }

    /// Forgets how far connections have come in a former room of a name that another node gives
    /// to a new one, as its events begin again.
    mutating func forgetFormer(_ room: String, than home: NodeName) {
        peers[home]?.closed.remove(room)
        for connection in Array(subscriptions.keys) {
            guard let position = subscriptions[connection]?.positions[room], position.node != home
            else { continue }
            subscriptions[connection]?.positions[room] = nil
        }
    }

    /// Notes how far the connections here have come in a room that leaves this node.
    mutating func noteTold(_ told: UInt64, of room: String) {
        let position = Subscription.Position(seq: told, node: setup.name)
        for connection in Array(subscriptions.keys)
        where subscriptions[connection]?.interest.includes(room: room) == true {
            // It has got none of this node's events yet.
            if subscriptions[connection]?.isBegun == false,
                subscriptions[connection]?.positions[room] != nil
            {
                continue
            }
            subscriptions[connection]?.positions[room] = position
        }
    }
}
