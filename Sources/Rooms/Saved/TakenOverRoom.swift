import RTP
import WorkerInterface

// A room of another host, which was lost, that goes on at this one.

extension Room {
    /// Parts of a room that another host has saved.
    package struct ForeignParts: Sendable {
        package var room: Saved
        package var settings: Settings
        package var participants: [SavedParticipant]
        package var streams: [Stream]
        package var subscriptions: [Subscription]
        package var mirrors: [SavedMirrors]

        package init(
            _ room: Saved,
            settings: Settings,
            participants: [SavedParticipant],
            streams: [Stream],
            subscriptions: [Subscription],
            mirrors: [SavedMirrors]
        ) {
            self.room = room
            self.settings = settings
            self.participants = participants
            self.streams = streams
            self.subscriptions = subscriptions
            self.mirrors = mirrors
        }

        /// Highest number of a subscription.
        package var lastSubscription: UInt64 { subscriptions.map(\.number).max() ?? 0 }
    }

    /// Makes a room from the parts that another host has saved, and returns what to announce and
    /// what to tell the workers.
    ///
    /// Transports that `renaming` keeps go on, with `negotiations` under their new names. The
    /// participants of the others have lost them and may return; their streams and subscriptions
    /// have ended, and so have recordings, live streams and RTP forwards. An automatic recording
    /// begins again. `worker` is the first one here.
    ///
    /// - Throws: `InconsistentParts` if a part needs another that is missing.
    package static func takeOver(
        _ parts: ForeignParts,
        _ renaming: Renaming,
        negotiations: [SavedNegotiation],
        at node: String,
        because reason: MoveReason,
        worker: Int,
        _ shared: inout Shared
    ) throws(InconsistentParts) -> (room: Self, change: Change) {
        var parts = parts
        try parts.rename(renaming, at: node)
        var own = shared
        guard own.locals.indices.contains(worker) else {
            throw InconsistentParts(cause: "worker \(worker) is missing")
        }
        own.taps = nil
        var room = try Self(
            parts.room.moved(to: worker),
            settings: parts.settings,
            participants: parts.participants,
            streams: parts.streams,
            subscriptions: parts.subscriptions,
            negotiations: nil,
            mirrors: parts.mirrors,
            keptBelow: .max,
            shared: own
        )
        guard room.lifecycle.isPlausible else { throw InconsistentParts(cause: "a count is huge") }
        room.restore(negotiations, shared)
        var transaction = RoomTransaction(shared: own)
        room.loseTaps(&transaction)
        transaction.forgetWorkers()
        transaction.shared = shared
        room.tellAll(&transaction)
        let kept = Set(renaming.kept.compactMap { renaming.transports[$0] })
        room.loseTransports(except: kept, at: node, because: reason, &transaction)
        for id in Array(room.participants.keys) { room.participants[id]?.session.settleAll() }
        // Some slots may be empty that the former home had filled last.
        for number in room.subscriptions.keys.sorted() {
            room.reconcile(subscription: number, &transaction)
        }
        room.settle(&transaction)
        shared = transaction.shared
        return (room, transaction.change)
    }

    /// Brings the workers up to date with the transports that go on, and tells of all objects.
    private mutating func tellAll(_ transaction: inout RoomTransaction) {
        let people = participants.values.sorted { $0.birth < $1.birth }
        for transport in people.flatMap(\.transports) { tellKept(transport, &transaction) }
        let gone = people.flatMap(\.transports)
            .filter { placement.negotiated[$0.place] == nil }
            .flatMap { transport in transport.tracks.map { transport.home(of: $0) } }
        tellMirrors(exceptOf: Set(gone), &transaction)
        for transport in people.flatMap(\.transports) {
            tellRelays(of: transport, &transaction)
            tellBindings(of: transport, &transaction)
        }
        for number in subscriptions.keys.sorted() { transaction.open(.subscription(number)) }
    }

    private func tellKept(_ transport: Transport, _ transaction: inout RoomTransaction) {
        let (worker, id) = (transport.place.worker, transport.place.id)
        transaction.open(.transport(worker: worker, id))
        for track in transport.tracks {
            transaction.open(.publication(worker: worker, track.publication))
        }
        guard var configuration = placement.negotiated[transport.place]?.configuration else {
            return
        }
        configuration.publications = transport.tracks.map(\.configuration)
        transaction.tell(worker, .configure(id, configuration))
        for track in transport.tracks {
            guard let gate = track.gate else { continue }
            transaction.tell(worker, .gate(track.publication, open: gate))
        }
    }

    /// Ends what the worker may still relay, and empties slots that it may think bound.
    func tellRelays(of transport: Transport, _ transaction: inout RoomTransaction) {
        guard placement.negotiated[transport.place] != nil else { return }
        let worker = transport.place.worker
        for track in transport.tracks where placement.relays[transport.home(of: track)] == nil {
            transaction.tell(worker, .relay(track.publication, to: []))
        }
        for slot in transport.slots where slot.bound == nil {
            transaction.tell(worker, .bind(slot.id, nil))
        }
    }

    /// Ends the other transports as lost; first, their participants are asked to come.
    private mutating func loseTransports(
        except kept: Set<TransportLocation>,
        at node: String,
        because reason: MoveReason,
        _ transaction: inout RoomTransaction
    ) {
        let people = participants.values.sorted { $0.birth < $1.birth }
        let lost = people.map { participant in
            let places = participant.transports.filter { !$0.isSuccessor }.map(\.place)
            return (participant.id, places.filter { !kept.contains($0) })
        }
        for participant in people {
            let gone = participant.transports.filter { $0.isSuccessor && !kept.contains($0.place) }
            for transport in gone {
                take(.disconnected(.nodeLost), of: transport.place, &transaction)
            }
        }
        for (participant, places) in lost where !places.isEmpty {
            let wanted = Event.moveWanted(participant: participant, node: node, reason)
            transaction.announce(wanted, to: .only([participant]))
        }
        for place in lost.flatMap(\.1) {
            take(.disconnected(.nodeLost), of: place, &transaction)
        }
    }

    private mutating func loseTaps(_ transaction: inout RoomTransaction) {
        for id in taps.ids {
            guard let tap = taps.remove(id) else { continue }
            taps.automatic.forget(id)
            guard tap.isReady || tap.purpose != .recording, !tap.isAwaited else { continue }
            announceEnd(of: tap.foreign, EndReason.nodeLost, by: nil, &transaction)
        }
    }
}

extension Room.Saved {
    /// The same without secrets: the keys in the addresses of live streams.
    package var withoutSecrets: Self {
        Self(
            name: name,
            lifecycle: lifecycle,
            moderation: moderation,
            speakers: speakers,
            taps: taps.withoutSecrets,
            firstWorker: firstWorker
        )
    }

    /// The same with another first worker.
    fileprivate func moved(to worker: Int) -> Self {
        Self(
            name: name,
            lifecycle: lifecycle,
            moderation: moderation,
            speakers: speakers,
            taps: taps,
            firstWorker: worker
        )
    }

    /// Whether there is something that `withoutSecrets` leaves out.
    package var hasSecrets: Bool { !taps.streamings.isEmpty }
}

extension Room.Tap {
    /// The same with an id that no tap of this host has.
    fileprivate var foreign: Self {
        var tap = Self(
            id: .max,
            name: name,
            directory: directory,
            started: started,
            by: by,
            purpose: purpose,
            streams: streams,
            isAwaited: isAwaited
        )
        tap.isReady = isReady
        return tap
    }
}
