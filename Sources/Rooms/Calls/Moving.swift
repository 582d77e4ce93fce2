package import RTP
import WorkerInterface

// Participants that move to another node: the client makes a new peer connection there while the
// old one goes on, and the new one takes everything over when it is connected.

extension Room {
    /// Place where a participant has been asked to go.
    package struct Move: Sendable, Codable {
        /// Other node, which answers the next offer of a new peer connection; `nil`: this one.
        package internal(set) var node: String?
        package let asked: Instant
    }

    /// Node of a transport; `nil`: this one.
    struct Site: Sendable, Codable { var node: String? }

    /// Asks a participant to go to another node; `nil` is this one.
    ///
    /// Its client may take its time: the transports that there are go on.
    mutating func move(
        _ id: String,
        to node: String?,
        _ name: String,
        _ transaction: inout RoomTransaction
    ) throws(CallError) {
        var participant = try participant(id)
        participant.move = Move(node: node, asked: transaction.shared.now)
        participants[id] = participant
        let wanted = Event.moveWanted(participant: id, node: name, .drain)
        transaction.announce(wanted, to: .only([id]))
    }

    /// Returns the transport that an offer continues; `nil` if the offer needs a new one.
    ///
    /// The offer of another peer connection of somebody who is to move needs a new one, which takes
    /// the place of the present one later. Otherwise such an offer is refused in the negotiation.
    func transport(
        continuedBy call: Offer,
        of participant: Participant,
        _ shared: Shared
    ) -> Transport? {
        let present = participant.transports
            .first { $0.name == call.transport && !$0.isSuccessor }
        let successor = participant.transports.first { $0.succeeds == call.transport }
        guard let present, participant.move != nil || successor != nil,
            isOfAnotherPeer(call, than: present)
        else { return present }
        if let successor {
            return isOfAnotherPeer(call, than: successor) ? nil : successor
        }
        guard let move = participant.move else { return present }
        // One that is not connected, or not any longer, may be left behind where it was to go.
        let isThere = move.node == shared.node(of: present.place.worker)
        return isThere && present.connection == .connected ? present : nil
    }

    private func isOfAnotherPeer(_ call: Offer, than transport: Transport) -> Bool {
        placement.negotiated[transport.place]?.negotiation.isOfAnotherPeer(call.sdp) == true
    }

    /// Node for a new transport of a participant; `nil` is this one.
    ///
    /// A lost node would answer for nobody: the participant connects at the home.
    func destination(
        of call: Offer,
        by participant: Participant,
        _ shared: Shared
    ) -> String? {
        let own = participant.move.map(\.node) ?? participant.node
        let node = call.destination.map(\.node) ?? own
        return shared.isLost(node) ? nil : node
    }

    /// Notes where a participant connects, and whether it has come where it was to go.
    mutating func noteNode(of transport: Transport, of id: String, _ shared: Shared) {
        participants[id]?.node = shared.node(of: transport.place.worker)
        guard let move = participants[id]?.move else { return }
        let rest = participants[id]?.transports.filter {
            shared.node(of: $0.place.worker) != move.node
        }
        // It has come to the home if the node is lost where it was to go.
        if rest?.isEmpty != false || shared.isLost(move.node) { participants[id]?.move = nil }
    }

    /// Takes a change of the connection of a transport that is to take another one's place.
    mutating func take(
        _ what: TransportChange,
        ofSuccessor successor: Transport,
        of id: String,
        _ transaction: inout RoomTransaction
    ) {
        switch what {
        case .connected, .reconnected: succeed(successor, of: id, &transaction)
        case .reconnecting: break
        case .disconnected:
            end(transport: successor.name, of: id, EndReason.disconnected, &transaction)
        }
    }

    /// Ends a transport that was to take another one's place, if there is one.
    mutating func endSuccessor(
        of name: String,
        of id: String,
        _ transaction: inout RoomTransaction
    ) {
        guard
            let successor = participants[id]?.transports.first(where: { $0.succeeds == name })
        else { return }
        end(transport: successor.name, of: id, EndReason.transportClosed, &transaction)
    }

    /// Lets a new transport be what it is without the one whose place it was to take, as that has
    /// ended; returns whether there is one.
    mutating func promoteSuccessor(of name: String, of id: String) -> Bool {
        guard
            let index = participants[id]?.transports.firstIndex(where: { $0.succeeds == name })
        else { return false }
        participants[id]?.transports[index].name = name
        participants[id]?.transports[index].succeeds = nil
        let site = participants[id]?.transports[index].site
        participants[id]?.node = site?.node
        return true
    }

    /// Tells at which node a participant is now.
    func tellNode(of id: String, _ transaction: inout RoomTransaction) {
        guard let participant = participants[id] else { return }
        transaction.announce(.participantChanged(participant), to: audience(of: participant))
    }

    /// Gives a transport that is connected the streams, subscriptions and following slots of the
    /// one whose place it takes, and closes that one.
    private mutating func succeed(
        _ successor: Transport,
        of id: String,
        _ transaction: inout RoomTransaction
    ) {
        guard let name = successor.succeeds else { return }
        dropSlots(without: successor, of: id, name, &transaction)
        // Read it again: slots have been released.
        guard let old = participants[id]?.transports.first(where: { $0.name == name }) else {
            return
        }
        for slot in old.slots {
            unbind(SlotName(transport: name, mid: slot.mid), of: id, &transaction)
        }
        let transports = (participants[id]?.transports ?? []).compactMap { transport in
            switch transport.name {
            case name: successor.inPlace(of: old)
            case successor.name: nil
            default: transport
            }
        }
        participants[id]?.transports = transports
        noteNode(of: successor, of: id, transaction.shared)
        for stream in participants[id]?.streams ?? [] where streams[stream]?.transport == name {
            let before = streams[stream]
            streams[stream]?.move(to: successor.place)
            countSent(before, streams[stream], at: transaction.shared.now)
        }
        noteConnection(of: id, ifNone: .none)
        reconcile(publisher: id, ending: EndReason.unpublished, &transaction)
        carryOn(subscriptionsOf: id, &transaction)
        close(old, of: id, &transaction)
        tellRecovery(of: id, name, from: old.connection, &transaction)
        tellNode(of: id, &transaction)
    }

    /// Tells that a transport is connected again, or at last, whose place a new one has taken.
    private mutating func tellRecovery(
        of id: String,
        _ name: String,
        from before: Connection,
        _ transaction: inout RoomTransaction
    ) {
        guard before != .connected, let participant = participants[id] else { return }
        let isBack = before == .reconnecting
        transaction.announce(
            .connection(participant: id, transport: name, isBack ? .reconnected : .connected),
            to: participant.admitted ? .everyone : .only([id])
        )
        if isBack { resume(id, name, &transaction) }
    }

    /// Releases the slots of a transport that have no m-line in the one that takes its place.
    private mutating func dropSlots(
        without successor: Transport,
        of id: String,
        _ name: String,
        _ transaction: inout RoomTransaction
    ) {
        guard let old = participants[id]?.transports.first(where: { $0.name == name }) else {
            return
        }
        let lost = old.slots.filter { successor.slot(like: $0) == nil }
        dropSlots(lost.map(\.id), of: id, old, &transaction)
    }

    /// Sends a participant what it has subscribed to, on the slots that it has now.
    private mutating func carryOn(
        subscriptionsOf id: String,
        _ transaction: inout RoomTransaction
    ) {
        for number in participants[id]?.subscriptions ?? [] {
            takeFreeSlots(for: number)
            hold(number, because: nil, &transaction)
        }
        speakers.followers.note(id)
    }
}

extension Room.Transport {
    /// Whether it is to take the place of another one, which goes on meanwhile.
    package var isSuccessor: Bool { succeeds != nil }

    /// Name under which calls and events know it.
    var publicName: String { succeeds ?? name }

    /// Makes this new transport the one that is to take the place of another.
    ///
    /// Until then it has a name that nobody knows, made from a random number.
    mutating func succeed(_ other: Self, number: UInt64) {
        succeeds = other.name
        name = "moving-" + String(number, radix: 36)
        audioFallback = other.audioFallback
        camera = other.camera
        screen = other.screen
    }

    fileprivate func slot(like other: Room.Slot) -> Room.Slot? {
        slots.first { $0.mid == other.mid && $0.kind == other.kind }
    }

    /// Returns the transport as it is in the place of an older one.
    fileprivate func inPlace(of old: Self) -> Self {
        var new = self
        new.name = old.name
        new.succeeds = nil
        new.connection = .connected
        for index in new.slots.indices {
            guard let other = old.slot(like: new.slots[index]) else { continue }
            new.slots[index].subscription = other.subscription
            new.slots[index].follows = other.follows
        }
        for index in new.tracks.indices {
            let track = new.tracks[index]
            // An m-line may have another mid on the new connection: what was ended stays so.
            let same = old.tracks.filter { $0.kind == track.kind && $0.source == track.source }
            let exact = same.first { $0.mid == track.mid }
            new.tracks[index].withdrawn =
                exact.map(\.withdrawn) ?? same.contains(where: \.withdrawn)
        }
        return new
    }
}
