import Contract
import JSON
import RTP

/// Event subscription of a connection at this node, with the nodes that send it events.
struct Subscription {
    /// Events that a node is asked for when the subscription begins there.
    enum Beginning {
        /// As the caller asked.
        case asAsked
        /// The node got its first room later: all events of its rooms.
        case allOfRooms
        /// The link was lost: what came since.
        case goingOn
    }

    struct Attachment {
        var beginning: Beginning
        var isAsked = false
        var isAttached = false
    }

    var call: PendingCall
    var params: EventsSubscribe.Params
    var interest: FeedInterest
    var attachments: [NodeName: Attachment] = [:]
    /// Latest time of the reply, until it is given.
    var replyBy: Instant?
    /// Events of other nodes that came before the reply.
    var early: [[UInt8]] = []
}

// Events of rooms at other nodes, for connections of this one.
extension Cluster {
    /// Subscribes a connection here and at the nodes that have its rooms; then it is answered.
    mutating func subscribe(_ call: PendingCall, _ connection: UInt64, at now: Instant) {
        guard let params = try? call.request.params(EventsSubscribe.Params.self),
            (params.since ?? [:]).values.allSatisfy({ $0 >= 0 })
        else { return execute(call) }
        if subscriptions[connection]?.replyBy != nil { finishSubscribe(connection, at: now) }
        let before = subscriptions[connection]
        var subscription = Subscription(
            call: call,
            params: params,
            interest: FeedInterest(params)
        )
        subscription.replyBy = now.advanced(milliseconds: Self.subscribeMilliseconds)
        subscriptions[connection] = subscription
        let homes = homes(for: subscription.interest, at: now)
        for (node, attachment) in before?.attachments ?? [:]
        where attachment.isAsked && !homes.contains(node) {
            emit(.send(node, .closed(connection: connection)))
        }
        for node in homes {
            subscriptions[connection]?.attachments[node] = .init(beginning: .asAsked)
            attach(connection, to: node, at: now)
        }
        if homes.isEmpty { finishSubscribe(connection, at: now) }
    }

    private func homes(for interest: FeedInterest, at now: Instant) -> [NodeName] {
        var homes: Set<NodeName> = []
        for (room, known) in directory
        where known.record.home != setup.name && interest.includes(room: room) {
            if !isOver(known.record, at: now) { homes.insert(known.record.home) }
        }
        return homes.sorted()
    }

    /// Executes the local part of a subscription, which replies, and passes on what came before.
    private mutating func finishSubscribe(_ connection: UInt64, at now: Instant) {
        guard var subscription = subscriptions[connection], subscription.replyBy != nil else {
            return
        }
        subscription.replyBy = nil
        let early = subscription.early
        subscription.early = []
        subscriptions[connection] = subscription
        var call = subscription.call
        if let since = subscription.params.since, case .object(var params) = call.request.params {
            var own: [String: JSON] = [:]
            for (room, seq) in since {
                let known = directory[room.rawValue]
                guard known == nil || known?.record.home == setup.name else { continue }
                own[room.rawValue] = .integer(seq)
            }
            params["since"] = .object(own)
            call.request.params = .object(params)
        }
        execute(call)
        for line in early { emit(.line(connection: connection, line)) }
    }

    /// Asks a node for the events of its rooms that a connection wants.
    private mutating func attach(_ connection: UInt64, to node: NodeName, at now: Instant) {
        guard let subscription = subscriptions[connection], let member = members[node],
            let attachment = subscription.attachments[node], !attachment.isAsked
        else { return }
        subscriptions[connection]?.attachments[node]?.isAsked = true
        var params = EventsSubscribe.Params(
            rooms: subscription.params.rooms,
            events: subscription.params.events
        )
        // Events that are asked for already come once.
        let awaited = peers[node]?.awaited.filter { $0.value.contains(connection) } ?? [:]
        params.since = since(subscription, attachment.beginning, at: node)
            .filter { awaited[$0.key.rawValue] == nil }
        let outgoing = subscribing(connection, params, boot: member.record.boot, at: now)
        let number = nextNumber()
        peers[node, default: Peer()].add(outgoing, number)
        sendCall(number, to: node)
        connectIfNeeded(node, at: now)
    }

    /// Returns the `since` for a node: the last events seen of its rooms.
    private func since(
        _ subscription: Subscription,
        _ beginning: Subscription.Beginning,
        at node: NodeName
    ) -> [RoomID: Int64] {
        // Rooms of an earlier life have ended, which was told.
        var rooms = directory.filter { _, known in
            known.record.home == node && !known.record.ended
                && members.isAlive(node, boot: known.record.boot)
        }.map(\.key)
        let positions = peers[node]?.positions ?? [:]
        if beginning == .goingOn { rooms += positions.keys.filter { directory[$0] == nil } }
        let asked = subscription.params.since ?? [:]
        var since: [RoomID: Int64] = [:]
        for room in rooms where subscription.interest.includes(room: room) {
            let id = RoomID(room)
            switch beginning {
            case .asAsked: since[id] = asked[id]
            case .allOfRooms:
                since[id] = positions[room].map { Int64(clamping: $0) } ?? asked[id] ?? 0
            case .goingOn: since[id] = Int64(clamping: positions[room] ?? 0)
            }
        }
        return since
    }

    mutating func noteAttached(_ connection: UInt64, to node: NodeName, at now: Instant) {
        guard subscriptions[connection]?.attachments[node] != nil else { return }
        subscriptions[connection]?.attachments[node]?.isAttached = true
        subscriptions[connection]?.attachments[node]?.beginning = .goingOn
        let isComplete = subscriptions[connection]?.attachments.values.allSatisfy(\.isAttached)
        if isComplete == true { finishSubscribe(connection, at: now) }
    }

    /// Attaches the connections that want a room's events and do not get those of its node.
    mutating func attachAll(to node: NodeName, for room: String, at now: Instant) {
        for (connection, subscription) in subscriptions
        where subscription.interest.includes(room: room) {
            guard subscription.attachments[node] == nil else { continue }
            subscriptions[connection]?.attachments[node] = .init(beginning: .allOfRooms)
            attach(connection, to: node, at: now)
        }
    }

    /// Attaches connections again after the link was lost.
    mutating func attachAll(to node: NodeName, at now: Instant) {
        for connection in subscriptions.keys { attach(connection, to: node, at: now) }
    }

    mutating func detachAll(from node: NodeName) {
        for connection in subscriptions.keys
        where subscriptions[connection]?.attachments[node] != nil {
            subscriptions[connection]?.attachments[node]?.isAsked = false
            subscriptions[connection]?.attachments[node]?.isAttached = false
        }
    }

    /// Forgets that a node was asked for events, as it has left; another life is asked again.
    mutating func forgetAttachments(to node: NodeName) {
        for connection in subscriptions.keys {
            subscriptions[connection]?.attachments[node] = nil
        }
    }

    mutating func expireSubscriptions(at now: Instant) {
        for (connection, subscription) in subscriptions {
            guard let end = subscription.replyBy, end <= now else { continue }
            finishSubscribe(connection, at: now)
        }
    }

    /// Forgets a closed connection of this node.
    package mutating func connectionClosed(_ connection: UInt64) {
        guard let subscription = subscriptions.removeValue(forKey: connection) else { return }
        for (node, attachment) in subscription.attachments where attachment.isAsked {
            if peers[node]?.link == .up { emit(.send(node, .closed(connection: connection))) }
        }
        // Positions tell a subscription where it was; with the last one they are of no use. Who can
        // be reached tells them again when somebody subscribes.
        guard subscriptions.isEmpty else { return }
        for (node, peer) in peers where peer.link == .up { peers[node]?.positions = [:] }
    }

    /// Passes an event of another node on.
    mutating func relay(
        _ line: [UInt8],
        _ name: String,
        _ room: String,
        _ seq: UInt64,
        to connections: [UInt64],
        from node: NodeName
    ) {
        counters.eventsReceived &+= 1
        var connections = connections
        if !room.isEmpty {
            // It has moved there, and the registry has not told it yet: all of its events will be
            // asked for.
            if let known = directory[room]?.record, !known.ended,
                known.home != node || known.boot != members[node]?.record.boot
            {
                return
            }
            if let awaited = peers[node]?.awaited[room], !awaited.isEmpty {
                connections.removeAll { awaited.contains($0) }
                guard !connections.isEmpty else { return }
            }
            // The name was given to another room before the registry told of the end of this one;
            // the events go on in number.
            if seq > peers[node]?.positions[room] ?? .max { peers[node]?.closed.remove(room) }
            if name == RoomCreated.event { peers[node]?.closed.remove(room) }
            guard peers[node]?.closed.contains(room) == false else { return }
            if name == RoomClosed.event, directory[room]?.record.home != node {
                peers[node]?.positions[room] = nil
            } else {
                peers[node]?.positions[room] = seq
                if name == RoomClosed.event { peers[node]?.closed.insert(room) }
            }
        }
        for connection in connections { deliver(line, to: connection) }
    }

    mutating func deliver(_ line: [UInt8], to connection: UInt64) {
        guard let subscription = subscriptions[connection] else { return }
        if subscription.replyBy != nil {
            subscriptions[connection]?.early.append(line)
        } else {
            emit(.line(connection: connection, line))
        }
    }

    mutating func note(_ positions: [String: UInt64], of node: NodeName) {
        for (room, seq) in positions {
            let known = peers[node]?.positions[room] ?? 0
            peers[node]?.positions[room] = max(seq, known)
        }
    }

    /// Forgets a room whose record is gone, once its end was told.
    mutating func forgetPosition(of room: String, at node: NodeName) {
        guard peers[node]?.closed.remove(room) != nil else { return }
        peers[node]?.positions[room] = nil
    }

    /// Makes the call that subscribes a connection at another node.
    func subscribing(
        _ connection: UInt64,
        _ params: EventsSubscribe.Params,
        boot: String,
        at now: Instant
    ) -> OutgoingCall {
        let request = IPCRequest(
            id: .integer(0),
            method: EventsSubscribe.name,
            params: JSON.value(of: params)
        )
        let line = request.encoded()
        let call = PendingCall(request: request, line: line, origin: .here(connection))
        var outgoing = OutgoingCall(call: call, boot: boot, connection: connection, at: now)
        outgoing.subscriber = connection
        return outgoing
    }

    /// Reason in `room.closed` of a room that has ended with its node.
    package static let lossReason = "node-lost"
    /// Longest time for which the reply to `events.subscribe` waits for other nodes.
    static let subscribeMilliseconds: Int64 = 2_000
}

// Events of this node's rooms, for connections of others.
extension Cluster {
    /// Takes the subscription of a connection at another node, with the events that it missed.
    ///
    /// `positions` has the `seq` of the last event of each room of this node.
    package mutating func subscribed(
        _ number: UInt64,
        replay: [(name: String, line: [UInt8])],
        positions: [String: UInt64]
    ) {
        guard let guest = guests.removeValue(forKey: number), let interest = guest.interest,
            case .peer(let node, _, _, let connection) = guest.caller, peers[node]?.link == .up
        else { return }
        peers[node]?.interests[connection] = interest
        for event in replay {
            counters.eventsSent &+= 1
            let message = LinkMessage.event(
                connections: [connection],
                room: "",
                seq: 0,
                name: event.name,
                line: event.line
            )
            emit(.send(node, message))
        }
        var chunk: [String: UInt64] = [:]
        for (room, seq) in positions where interest.includes(room: room) {
            // Held events will come.
            chunk[room] = min(seq, journaling.rooms[room]?.firstHeld.map { $0 - 1 } ?? seq)
            guard chunk.count == LinkMessage.positionLimit else { continue }
            emit(.send(node, .positions(chunk)))
            chunk = [:]
        }
        if !chunk.isEmpty { emit(.send(node, .positions(chunk))) }
    }

    /// Passes an event of a room of this node to the nodes whose connections want it.
    package mutating func send(_ line: [UInt8], _ name: String, in room: String, seq: UInt64) {
        for (node, peer) in peers where peer.link == .up && !peer.interests.isEmpty {
            let connections = peer.interests.filter { $0.value.includes(name, in: room) }.keys
            guard !connections.isEmpty else { continue }
            counters.eventsSent &+= 1
            let message = LinkMessage.event(
                connections: connections.sorted(),
                room: room,
                seq: seq,
                name: name,
                line: line
            )
            emit(.send(node, message))
        }
    }
}

extension JSON {
    /// Returns a value as a tree.
    fileprivate static func value(of value: some Encodable) -> JSON {
        (try? JSON(parsing: JSON.encoded(value))) ?? [:]
    }
}
