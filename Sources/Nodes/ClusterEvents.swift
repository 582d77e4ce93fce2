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
        /// Number of the call that asks the node for events.
        var number: UInt64?
        var isAttached = false
        var isAsked: Bool { number != nil }
    }

    /// Last event of a room that a connection has.
    struct Position: Hashable {
        /// `seq` of the last event that it got, or that was told before it subscribed.
        var seq: UInt64
        /// Home of the room then.
        var node: NodeName
        /// Whether what follows was asked for, as a later event came first.
        var isAsked = false
    }

    var call: PendingCall
    var params: EventsSubscribe.Params
    var interest: FeedInterest
    var attachments: [NodeName: Attachment] = [:]
    /// Latest time of the reply, until it is given.
    var replyBy: Instant?
    /// Events of other nodes that came before the reply, and their bytes.
    var early: [[UInt8]] = []
    var earlyBytes = 0
    /// Whether the connection gets the events of this node's rooms.
    var isBegun = false
    /// Its positions in rooms of other nodes, and in those that have left this one.
    ///
    /// That a room has come further is known of no connection before it has the events: the next
    /// home is asked for what follows this.
    var positions: [String: Position] = [:]
    /// Rooms whose missed events it waits for, with the call that asks for them.
    ///
    /// Later events of theirs come with those, and are left out before.
    var awaited: [String: UInt64] = [:]
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
        subscription.positions = beginning(of: subscription, after: before, at: now)
        subscriptions[connection] = subscription
        let homes = homes(for: subscription.interest, at: now)
        for (node, attachment) in before?.attachments.inOrder() ?? []
        where attachment.isAsked && !homes.contains(node) {
            emit(.send(node, .closed(connection: connection)))
        }
        let rooms = roomsByHome(for: subscription.interest)
        for node in homes {
            subscriptions[connection]?.attachments[node] = .init(beginning: .asAsked)
            attach(connection, to: node, of: rooms[node] ?? [], at: now)
        }
        if homes.isEmpty { finishSubscribe(connection, at: now) }
    }

    /// Executes the local part of a subscription, which replies, and passes on what came before.
    private mutating func finishSubscribe(_ connection: UInt64, at now: Instant) {
        guard var subscription = subscriptions[connection], subscription.replyBy != nil else {
            return
        }
        subscription.replyBy = nil
        let early = subscription.early
        subscription.early = []
        subscription.earlyBytes = 0
        subscriptions[connection] = subscription
        var call = subscription.call
        if let since = subscription.params.since, case .object(var params) = call.request.params {
            var own: [String: JSON] = [:]
            for (room, seq) in since {
                let known = directory[room.rawValue]
                // No other node is asked for a room that has ended with its home.
                let isGone = known?.record.ended ?? true
                guard isGone || known?.record.home == setup.name else { continue }
                // Missed events of a room without a home follow once it has one.
                if known != nil, isBetweenHomes(room.rawValue, at: now) { continue }
                own[room.rawValue] = .integer(seq)
                guard isGone || holds[room.rawValue]?.exists == true else { continue }
                subscriptions[connection]?.positions[room.rawValue] = nil
            }
            params["since"] = .object(own)
            call.request.params = .object(params)
        }
        execute(call)
        for line in early { emit(.line(connection: connection, line)) }
    }

    /// Asks a node for the events of its rooms that a connection wants.
    private mutating func attach(
        _ connection: UInt64,
        to node: NodeName,
        of rooms: [String],
        at now: Instant
    ) {
        guard let subscription = subscriptions[connection], let member = members[node],
            let attachment = subscription.attachments[node], !attachment.isAsked
        else { return }
        // Events that are asked for already come once.
        let missed = since(subscription, attachment.beginning, at: node, rooms)
            .filter { subscription.awaited[$0.key.rawValue] == nil }
        let number = ask(node, for: missed, connection, boot: member.record.boot, at: now)
        subscriptions[connection]?.attachments[node]?.number = number
        connectIfNeeded(node, at: now)
    }

    /// Asks a node for the events of its rooms, and for those that a connection has missed; returns
    /// the number of the call.
    @discardableResult
    mutating func ask(
        _ node: NodeName,
        for missed: [RoomID: Int64],
        _ connection: UInt64,
        boot: String,
        at now: Instant
    ) -> UInt64 {
        let number = nextNumber()
        guard let subscription = subscriptions[connection] else { return number }
        let params = EventsSubscribe.Params(
            rooms: subscription.params.rooms,
            since: missed,
            events: subscription.params.events
        )
        for room in missed.keys { subscriptions[connection]?.awaited[room.rawValue] = number }
        let outgoing = subscribing(connection, params, boot: boot, at: now)
        peers[node, default: Peer()].add(outgoing, number)
        sendCall(number, to: node)
        return number
    }

    /// Returns the `since` for a node: the last events seen of its rooms.
    private func since(
        _ subscription: Subscription,
        _ beginning: Subscription.Beginning,
        at node: NodeName,
        _ wanted: [String]
    ) -> [RoomID: Int64] {
        var rooms = wanted
        if beginning == .goingOn {
            for (room, position) in subscription.positions
            where position.node == node && directory[room] == nil {
                rooms.append(room)
            }
        }
        var since: [RoomID: Int64] = [:]
        for room in rooms where subscription.interest.includes(room: room) {
            let id = RoomID(room)
            let seen = seen(room, by: subscription).map { Int64(clamping: $0) }
            let asked = subscription.params.since?[id]
            switch beginning {
            case .asAsked: since[id] = seen ?? asked
            case .allOfRooms: since[id] = seen ?? asked ?? 0
            case .goingOn: since[id] = seen ?? 0
            }
        }
        return since
    }

    /// Takes the reply to a question for events; those that were missed follow.
    mutating func noteAnswered(
        _ number: UInt64,
        of connection: UInt64,
        by node: NodeName,
        at now: Instant
    ) {
        forgetAwaited(number, of: connection)
        guard subscriptions[connection]?.attachments[node]?.number == number else { return }
        subscriptions[connection]?.attachments[node]?.isAttached = true
        subscriptions[connection]?.attachments[node]?.beginning = .goingOn
        let isComplete = subscriptions[connection]?.attachments.values.allSatisfy(\.isAttached)
        if isComplete == true { finishSubscribe(connection, at: now) }
    }

    /// Forgets a question for events that nobody answers, so that it is asked again.
    mutating func forgetQuestion(_ number: UInt64, of connection: UInt64, to node: NodeName) {
        forgetAwaited(number, of: connection)
        guard subscriptions[connection]?.attachments[node]?.number == number else { return }
        subscriptions[connection]?.attachments[node]?.number = nil
        subscriptions[connection]?.attachments[node]?.isAttached = false
    }

    private mutating func forgetAwaited(_ number: UInt64, of connection: UInt64) {
        let awaited = subscriptions[connection]?.awaited ?? [:]
        for (room, call) in awaited where call == number {
            subscriptions[connection]?.awaited[room] = nil
        }
    }

    /// Attaches the connections that want a room's events and do not get those of its node.
    mutating func attachAll(to node: NodeName, for room: String, at now: Instant) {
        let wanting = subscriptions.inOrder { $0.interest.includes(room: room) }
        var all: [String]?
        for (connection, subscription) in wanting {
            guard let attachment = subscription.attachments[node] else {
                subscriptions[connection]?.attachments[node] = .init(beginning: .allOfRooms)
                let rooms = rooms(of: node, for: subscription.interest, &all)
                attach(connection, to: node, of: rooms, at: now)
                continue
            }
            // The room may have its first events before the node takes the question under way.
            guard attachment.isAsked, !attachment.isAttached, attachment.beginning != .asAsked,
                subscription.awaited[room] == nil, subscription.positions[room] == nil,
                let boot = members[node]?.record.boot
            else { continue }
            ask(node, for: [RoomID(room): 0], connection, boot: boot, at: now)
        }
    }

    /// Attaches connections again after the link was lost.
    mutating func attachAll(to node: NodeName, at now: Instant) {
        let lacking = subscriptions.inOrder { $0.attachments[node]?.isAsked == false }
        var all: [String]?
        for (connection, subscription) in lacking {
            let rooms = rooms(of: node, for: subscription.interest, &all)
            attach(connection, to: node, of: rooms, at: now)
        }
    }

    mutating func detachAll(from node: NodeName) {
        for connection in subscriptions.keys
        where subscriptions[connection]?.attachments[node] != nil {
            subscriptions[connection]?.attachments[node]?.number = nil
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
        if let end = registry.firstReadEnd, end <= now { endFirstRead(at: now) }
        for (connection, subscription) in subscriptions.inOrder(where: { $0.replyBy != nil }) {
            guard let end = subscription.replyBy, end <= now else { continue }
            finishSubscribe(connection, at: now)
        }
    }

    /// Forgets a closed connection of this node.
    package mutating func connectionClosed(_ connection: UInt64) {
        guard let subscription = subscriptions.removeValue(forKey: connection) else { return }
        for (node, attachment) in subscription.attachments.inOrder() where attachment.isAsked {
            if peers[node]?.link == .up { emit(.send(node, .closed(connection: connection))) }
        }
    }

    mutating func deliver(_ line: [UInt8], to connection: UInt64) {
        // No copy is made of the subscription, as each event comes here.
        guard subscriptions[connection] != nil else { return }
        guard subscriptions[connection]?.replyBy != nil else {
            return emit(.line(connection: connection, line))
        }
        subscriptions[connection]?.early.append(line)
        subscriptions[connection]?.earlyBytes += line.count
        // All of it comes with the reply: the connection would be dropped for more.
        guard subscriptions[connection]?.earlyBytes ?? 0 > earlyLimit else { return }
        finishSubscribe(connection, at: lastActive)
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
        replay: [ReplayedEvent],
        positions: [String: UInt64]
    ) {
        guard let guest = guests.removeValue(forKey: number), let interest = guest.interest,
            case .peer(let node, _, _, let connection) = guest.caller, peers[node]?.link == .up
        else { return }
        let isKnown = peers[node]?.interests[connection] == interest
        peers[node]?.interests[connection] = interest
        for event in replay {
            counters.eventsSent &+= 1
            let message = LinkMessage.event(
                connections: [connection],
                room: event.room,
                seq: event.seq,
                name: event.name,
                line: event.line
            )
            emit(.send(node, message))
        }
        noteReplayed(replay, to: node)
        // It asks only for what it has missed of a room: the positions were told before.
        guard !isKnown || guest.hasWaited else { return }
        var chunk: [String: UInt64] = [:]
        for (room, seq) in positions where interest.includes(room: room) {
            // Held events will come, and those that were let out and are not told yet.
            let coming = [
                journaling.rooms[room]?.firstHeld, journaling.released[room]?.keys.min(),
            ]
            let first = coming.compactMap(\.self).min()
            chunk[room] = min(seq, first.map { $0 - 1 } ?? seq)
            guard chunk.count == LinkMessage.positionLimit else { continue }
            emit(.send(node, .positions(chunk)))
            chunk = [:]
        }
        if !chunk.isEmpty { emit(.send(node, .positions(chunk))) }
    }

    /// Passes an event of a room of this node to the nodes whose connections want it.
    package mutating func send(_ line: [UInt8], _ name: String, in room: String, seq: UInt64) {
        journaling.released[room]?[seq] = nil
        if journaling.released[room]?.isEmpty == true { journaling.released[room] = nil }
        var told: [(node: NodeName, connections: [UInt64])] = []
        for (node, peer) in peers where peer.link == .up && !peer.interests.isEmpty {
            let connections = peer.interests.filter { $0.value.includes(name, in: room) }.keys
            if !connections.isEmpty { told.append((node, connections.sorted())) }
        }
        for (node, connections) in told.sorted(by: { $0.node < $1.node }) {
            counters.eventsSent &+= 1
            let message = LinkMessage.event(
                connections: connections,
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
