import Contract
package import RTP

/// Another node: its link, and what goes over it.
struct Peer {
    enum Link: Equatable {
        case down
        case connecting
        case up
    }

    var link = Link.down
    /// Calls of this node that the other has not answered, by number.
    private(set) var calls: [UInt64: OutgoingCall] = [:]
    /// Number below which all calls are answered.
    private var answered: UInt64 = 0
    /// Rooms of it whose end was told.
    var closed: Set<String> = []
    var incoming = IncomingCalls()
    /// Events that its connections receive from here.
    var interests: [UInt64: FeedInterest] = [:]
    /// Missed events that are on their way to it.
    var replays = ReplaysOnTheWay()
    /// Round-trip time of the link, in milliseconds.
    var roundTrip: Double?
    /// Messages about this home's participants at the node, and about that home's here.
    var places: PlaceStream?
    var guests: PlaceStream?
    /// Whether the node has told facts of itself over the present link.
    var isDescribed = false
    /// Whether it has told over the same link that it does not go on with `places`.
    var isDisowned = false
    /// Time since which the link has been down.
    var downSince: Instant?
    /// Whether nobody has listened at its port since.
    var isRefused = false
    /// Whether this node's lease on its rooms has been prolonged since.
    var isProlonged = false

    init() {}

    /// Makes what is kept of a node that has left while its rooms are still known.
    init(remembering known: Self) { closed = known.closed }

    /// Adds a call; its number is higher than those before.
    mutating func add(_ call: OutgoingCall, _ number: UInt64) {
        if calls.isEmpty { answered = number }
        calls[number] = call
    }

    /// Removes a call that is answered, or refused.
    @discardableResult
    mutating func remove(_ number: UInt64) -> OutgoingCall? { calls.removeValue(forKey: number) }

    /// Notes that a call waits for the link from now on, if it does not already.
    mutating func wait(_ number: UInt64, since now: Instant) {
        if calls[number]?.waitingSince == nil { calls[number]?.waitingSince = now }
    }

    /// Makes the message of a call that is sent; returns also whether it was sent before.
    ///
    /// The search for the oldest call goes on where it ended the last time, as numbers only grow.
    mutating func message(_ number: UInt64) -> (message: LinkMessage, isRepeat: Bool)? {
        guard let call = calls[number] else { return nil }
        calls[number]?.wasSent = true
        calls[number]?.waitingSince = nil
        while answered < number, calls[answered] == nil { answered += 1 }
        let message = LinkMessage.call(
            number: number,
            answered: answered,
            first: call.call.firstNumber ?? number,
            connection: call.connection,
            line: call.call.line
        )
        return (message, call.wasSent)
    }
}

/// A call that was sent to another node, or waits for the link.
struct OutgoingCall {
    var call: PendingCall
    /// Life of the node that it is for.
    var boot: String
    var connection: UInt64
    /// Whether it was sent at least once.
    var wasSent = false
    /// Time since which it has waited for a link.
    var waitingSince: Instant?
    /// Connection that asks for events by this call.
    var subscriber: UInt64?

    init(call: PendingCall, boot: String, connection: UInt64, at now: Instant) {
        self.call = call
        self.boot = boot
        self.connection = connection
        waitingSince = now
    }
}

/// A call that is executed here.
struct Guest {
    enum Caller {
        /// A connection of a signalling server at this node.
        case here(UInt64)
        /// Another node, with its life, and its number and connection of the call.
        case peer(NodeName, boot: String, number: UInt64, connection: UInt64)
    }

    var caller: Caller
    var call: PendingCall?
    var interest: FeedInterest?
    /// Whether such a question has waited for a room, and its events were told meanwhile.
    var hasWaited = false
    /// Such a question, while it waits for what is on its way over the link.
    var waiting: PendingCall?
    /// Whether the call has changed its room.
    var hasChanged = false
    /// Number of that change in the room's journal.
    var change: UInt64 = 0
    /// Name of the call in the room's journal; `nil` for one of this node's own connections.
    var name: String?
}

// Calls that other nodes execute.
extension Cluster {
    /// Sends a call if the link is up.
    mutating func sendCall(_ number: UInt64, to node: NodeName) {
        guard peers[node]?.link == .up, let sent = peers[node]?.message(number) else { return }
        if sent.isRepeat { counters.callsRepeated &+= 1 }
        emit(.send(node, sent.message))
    }

    mutating func connectIfNeeded(_ node: NodeName, at now: Instant) {
        guard peers[node, default: Peer()].link == .down, let member = members[node],
            !member.isLost
        else { return }
        peers[node, default: Peer()].link = .connecting
        let (address, fingerprint) = (member.record.link, member.record.fingerprint)
        emit(.connect(node, address: address, fingerprint: fingerprint))
    }

    /// Takes news of a link: it can carry messages, or has ended.
    package mutating func linkChanged(_ node: NodeName, isUp: Bool, at now: Instant) {
        guard let member = members[node] else { return }
        peers[node, default: Peer()].link = isUp ? .up : .down
        if isUp {
            members.hear(node, at: now)
            log("link up", ["node": node.rawValue])
            failCalls(to: node, exceptOf: member.record.boot, at: now)
            for number in peers[node]?.calls.keys.sorted() ?? [] { sendCall(number, to: node) }
            attachAll(to: node, at: now)
            resumePlaces(at: node, of: member.record.boot, at: now)
            peers[node]?.downSince = nil
            peers[node]?.isRefused = false
            peers[node]?.isProlonged = false
            emit(.linked(node))
        } else {
            // A connection that fails is no new loss.
            if peers[node]?.downSince == nil { peers[node]?.downSince = now }
            members.silence(node)
            peers[node]?.interests = [:]
            peers[node]?.replays = ReplaysOnTheWay()
            peers[node]?.roundTrip = nil
            peers[node]?.isDescribed = false
            peers[node]?.isDisowned = false
            for (number, call) in peers[node]?.calls ?? [:] {
                if let subscriber = call.subscriber {
                    peers[node]?.remove(number)
                    forgetQuestion(number, of: subscriber, to: node)
                } else {
                    peers[node]?.wait(number, since: now)
                }
            }
            detachAll(from: node)
            forgetSubscribing(from: node)
        }
    }

    /// Forgets the subscriptions of another node's connections that still wait to be executed: it
    /// subscribes again over the next link.
    private mutating func forgetSubscribing(from other: NodeName) {
        for (number, guest) in guests where guest.interest != nil {
            if case .peer(other, _, _, _) = guest.caller { guests[number] = nil }
        }
    }

    /// Notes that nobody listens at a node's port.
    package mutating func linkRefused(_ node: NodeName) {
        if peers[node]?.link != .up { peers[node]?.isRefused = true }
    }

    /// Lets leases on the rooms of homes whose process has died last until others have gone on.
    ///
    /// There are two signs of it: nobody listens at its port, and it writes no record, which a home
    /// does that is cut off from this node alone.
    mutating func prolongLeases(at now: Instant) {
        let refused = peers.inOrder { $0.isRefused && !$0.isProlonged && $0.guests != nil }
        for (node, _) in refused where members.isSilent(node, at: now) {
            peers[node]?.isProlonged = true
            emit(.prolong(node))
        }
    }

    package mutating func noteRoundTrip(_ milliseconds: Double, of node: NodeName) {
        peers[node]?.roundTrip = milliseconds
    }

    /// Takes a message of another node.
    package mutating func receive(_ message: LinkMessage, from node: NodeName, at now: Instant) {
        guard members[node] != nil else { return }
        members.hear(node, at: now)
        switch message {
        case .call(let number, let answered, let first, let connection, let line):
            host(number, answered: answered, first, connection, line, of: node, at: now)
        case .reply(let number, let line): finish(number, from: node, at: now) { $0.reply(line) }
        case .forgotten(let number):
            finish(number, from: node, at: now) { $0.refuse(.outcomeUnknown(node)) }
        case .notHere(let number): moveOn(number, from: node, at: now)
        case .event(let connections, let room, let seq, let name, let line):
            relay(line, name, room, seq, to: connections, from: node, at: now)
        case .positions(let positions): note(positions, of: node)
        case .closed(let connection):
            peers[node]?.interests[connection] = nil
            dropQuestions(of: connection, at: node, exceptFor: nil)
        case .ping: break
        case .pong(let stamp): noteArrived(before: stamp, at: node)
        case .describe(let facts): described(node, facts)
        case .place(let message): receive(message, from: node)
        }
    }

    private mutating func finish(
        _ number: UInt64,
        from node: NodeName,
        at now: Instant,
        _ answer: (OutgoingCall) -> ClusterOutput
    ) {
        guard let call = peers[node]?.remove(number) else { return }
        if let subscriber = call.subscriber {
            noteAnswered(number, of: subscriber, by: node, at: now)
        } else {
            let output = answer(call)
            if output == call.refuse(.outcomeUnknown(node)) { counters.outcomesUnknown &+= 1 }
            emit(output)
        }
    }

    /// Asks the registry for the room of a call that the other node does not have.
    private mutating func moveOn(_ number: UInt64, from node: NodeName, at now: Instant) {
        guard let outgoing = peers[node]?.remove(number) else { return }
        if let subscriber = outgoing.subscriber {
            return forgetQuestion(number, of: subscriber, to: node)
        }
        var call = outgoing.call
        guard let room = call.room, !call.wasLookedUp else { return execute(call) }
        call.wasLookedUp = true
        if lookups[room] != nil {
            lookups[room]?.append(call)
        } else {
            lookups[room] = [call]
            let request = nextNumber()
            registry.purposes[request] = .lookup(room)
            emit(.registry(.read(number: request, key: RegistryKey.room(room).text)))
        }
    }

    /// Answers the calls that a life of a node will not answer: all but those for `boot`.
    ///
    /// Those about rooms wait for the new home, which knows whether they took effect.
    mutating func failCalls(to node: NodeName, exceptOf boot: String?, at now: Instant) {
        for (number, call) in peers[node]?.calls.inOrder(where: { $0.boot != boot }) ?? [] {
            peers[node]?.remove(number)
            if let subscriber = call.subscriber {
                forgetQuestion(number, of: subscriber, to: node)
            }
            if call.subscriber == nil, let room = call.call.room,
                holds[room] != nil || directory[room]?.record.ended == false
            {
                var moved = call.call
                if call.wasSent { moved.firstNumber = moved.firstNumber ?? number }
                route(moved, at: now)
            } else {
                fail(call, at: node)
            }
        }
    }

    private mutating func fail(_ call: OutgoingCall, at node: NodeName) {
        guard call.subscriber == nil else { return }
        let isUnknown = call.wasSent || call.call.firstNumber != nil
        if isUnknown { counters.outcomesUnknown &+= 1 }
        emit(call.refuse(isUnknown ? .outcomeUnknown(node) : .nodeUnreachable(node)))
    }

    /// Connects where calls or subscriptions wait, and answers calls that have waited too long.
    mutating func expireLinks(at now: Instant) {
        // Media needs links between all: who joins at a node shall not wait for one.
        for node in members.alive where node != setup.name && peers[node] == nil {
            peers[node] = Peer()
        }
        for (node, peer) in peers.inOrder() {
            for (number, call) in peer.calls.inOrder(where: { $0.waitingSince != nil }) {
                guard let since = call.waitingSince,
                    now.milliseconds(since: since) >= Self.linkMilliseconds
                else { continue }
                peers[node]?.remove(number)
                if let subscriber = call.subscriber {
                    forgetQuestion(number, of: subscriber, to: node)
                }
                fail(call, at: node)
            }
            if peer.link == .down {
                connectIfNeeded(node, at: now)
            }
            peers[node]?.incoming.expire(at: now)
            expirePlaces(at: node, at: now)
        }
        prolongLeases(at: now)
    }

    /// Longest time for which a call waits for a link.
    static let linkMilliseconds: Int64 = 10_000
}

extension OutgoingCall {
    fileprivate func reply(_ line: [UInt8]) -> ClusterOutput {
        .line(connection: call.origin.connection, line)
    }

    fileprivate func refuse(_ error: IPCError) -> ClusterOutput {
        reply(IPCReply.encoded(id: call.request.id, error: error))
    }
}
