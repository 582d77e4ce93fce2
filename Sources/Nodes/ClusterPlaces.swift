import RTP

// Participants of a home at other nodes: ordered messages between the home and them.
extension Cluster {
    /// Tells a node facts about this one.
    package mutating func describe(_ facts: [UInt8], to node: NodeName) {
        guard peers[node]?.link == .up else { return }
        emit(.send(node, .describe(facts)))
    }

    /// Other node that made a call, which is executed under this connection number.
    package func caller(of connection: UInt64) -> NodeName? {
        guard case .peer(let node, _, _, _) = guests[connection]?.caller else { return nil }
        return node
    }

    /// Life of a node, as far as the registry knows.
    package func boot(of node: NodeName) -> String? { members[node]?.record.boot }

    /// Address at which a node takes links, and datagrams.
    package func address(of node: NodeName) -> String? { members[node]?.record.link }

    /// Sends a message about participants, as their home or as the node where they are.
    package mutating func send(_ payload: [UInt8], to node: NodeName, asHome: Bool) {
        guard let member = members[node], !member.isLost else { return }
        if asHome, peers[node]?.places == nil {
            lastSession = max(lastSession + 1, UInt64(max(0, unixTime) * 1e6))
            peers[node, default: Peer()].places = PlaceStream(
                session: lastSession,
                with: member.record.boot,
                isHome: true
            )
        }
        let path: WritableKeyPath<Peer, PlaceStream?> = asHome ? \.places : \.guests
        guard let message = peers[node]?[keyPath: path]?.next(payload) else { return }
        if peers[node]?[keyPath: path]?.isOverfull == true { return end(path, at: node) }
        if peers[node]?.link == .up { emit(.send(node, .place(message))) }
    }

    /// Takes facts that a node tells of itself over a new link.
    mutating func described(_ node: NodeName, _ facts: [UInt8]) {
        peers[node]?.isDescribed = true
        emit(.described(node, facts))
        disownPlacesIfDescribed(at: node)
    }

    /// Ends the session with a node that does not go on with it, when it has told facts of itself:
    /// they say whether it has kept participants.
    private mutating func disownPlacesIfDescribed(at node: NodeName) {
        guard peers[node]?.isDisowned == true, peers[node]?.isDescribed == true else { return }
        peers[node]?.isDisowned = false
        peers[node]?.places = nil
        emit(.placesDisowned(node))
    }

    mutating func receive(_ message: PlaceMessage, from node: NodeName) {
        guard let boot = members[node]?.record.boot else { return }
        let path: WritableKeyPath<Peer, PlaceStream?> = message.isFromHome ? \.guests : \.places
        let known = peers[node]?[keyPath: path]
        guard message.number != PlaceMessage.ending else {
            guard let known, message.session == known.session || message.session == 0 else {
                return
            }
            guard known.isHome else { return end(path, at: node) }
            peers[node]?.isDisowned = true
            return disownPlacesIfDescribed(at: node)
        }
        if message.isFromHome, message.session > known?.session ?? 0 {
            guard message.number == 1 else {
                // This process is not the one that took part in the session.
                return tellEnd(of: message.session, asHome: false, to: node)
            }
            if let known, known.boot == boot {
                // Its process has begun anew. It asks for the participants of before, or leaves
                // them to end.
                emit(.homeReturned(node, boot: boot))
            } else if known != nil {
                end(path, at: node, isOver: true)
            }
            peers[node]?.guests = PlaceStream(
                session: message.session,
                with: boot,
                isHome: false
            )
        }
        guard peers[node]?[keyPath: path]?.session == message.session,
            let arrival = peers[node]?[keyPath: path]?.receive(message)
        else { return }
        switch arrival {
        case .take: emit(.place(node, isFromHome: message.isFromHome, message.payload))
        case .ignore: break
        case .broken:
            tellEnd(of: message.session, asHome: !message.isFromHome, to: node)
            end(path, at: node)
        }
    }

    /// Goes on with the sessions over a new link, or ends those with another life of the node.
    mutating func resumePlaces(at node: NodeName, of boot: String, at now: Instant) {
        for path in [\Peer.places, \Peer.guests] {
            guard let stream = peers[node]?[keyPath: path] else { continue }
            guard stream.boot == boot else {
                end(path, at: node, isOver: true)
                continue
            }
            for message in stream.unacknowledged { emit(.send(node, .place(message))) }
            guard stream.unacknowledged.isEmpty,
                let message = peers[node]?[keyPath: path]?.acknowledgement()
            else { continue }
            emit(.send(node, .place(message)))
        }
        // A home that goes on without its former process has nobody there, unless it has kept them.
        // That holds for each link: both nodes may have connected.
        let goesOn = returning[node].map { now < $0 } ?? false
        if peers[node]?.places == nil, !goesOn { tellEnd(of: 0, asHome: true, to: node) }
    }

    /// Acknowledges what came, and ends sessions whose link has been away for too long.
    mutating func expirePlaces(at node: NodeName, at now: Instant) {
        for path in [\Peer.places, \Peer.guests] {
            guard let stream = peers[node]?[keyPath: path] else { continue }
            if peers[node]?.link == .up {
                guard stream.owesAcknowledgement,
                    let message = peers[node]?[keyPath: path]?.acknowledgement()
                else { continue }
                emit(.send(node, .place(message)))
            } else if let since = peers[node]?.downSince,
                now.milliseconds(since: since) >= Self.linkMilliseconds
            {
                end(path, at: node)
            }
        }
    }

    /// Ends the sessions with a node that is lost.
    mutating func losePlaces(at node: NodeName) {
        for path in [\Peer.places, \Peer.guests] where peers[node]?[keyPath: path] != nil {
            end(path, at: node, isOver: true)
        }
    }

    private mutating func tellEnd(of session: UInt64, asHome: Bool, to node: NodeName) {
        let message = PlaceMessage(
            session: session,
            isFromHome: asHome,
            number: PlaceMessage.ending,
            acknowledged: 0,
            payload: []
        )
        emit(.send(node, .place(message)))
    }

    /// Ends a session; `isOver`: the other node's life is over, and others go on with its rooms.
    private mutating func end(
        _ path: WritableKeyPath<Peer, PlaceStream?>,
        at node: NodeName,
        isOver: Bool = false
    ) {
        guard let stream = peers[node]?[keyPath: path] else { return }
        peers[node]?[keyPath: path] = nil
        log("participants at another node lost", ["node": node.rawValue], isWarning: true)
        guard !stream.isHome, isOver else {
            return emit(.placesLost(node, asHome: stream.isHome))
        }
        emit(.homeLost(node, boot: stream.boot))
    }
}
