import RTP
import WorkerInterface

// A room of another host, which was lost, that goes on at this one.

extension Room {
    /// Parts of a room that another host has saved; its transports and mirrors have ended with it.
    package struct ForeignParts: Sendable {
        package var room: Saved
        package var settings: Settings
        package var participants: [SavedParticipant]
        package var streams: [Stream]
        package var subscriptions: [Subscription]

        package init(
            _ room: Saved,
            settings: Settings,
            participants: [SavedParticipant],
            streams: [Stream],
            subscriptions: [Subscription]
        ) {
            self.room = room
            self.settings = settings
            self.participants = participants
            self.streams = streams
            self.subscriptions = subscriptions
        }

        /// Highest number of a subscription.
        package var lastSubscription: UInt64 { subscriptions.map(\.number).max() ?? 0 }
    }

    /// Makes a room from the parts that another host has saved, and returns what to announce.
    ///
    /// Its participants have lost their transports and may return; their streams and subscriptions
    /// have ended with these, and so have recordings, live streams and RTP forwards. An automatic
    /// recording begins again. `worker` is the first one here.
    ///
    /// - Throws: `InconsistentParts` if a part needs another that is missing.
    package static func takeOver(
        _ parts: ForeignParts,
        at node: String,
        because reason: MoveReason,
        worker: Int,
        _ shared: inout Shared
    ) throws(InconsistentParts) -> (room: Self, change: Change) {
        let scene = try scene(of: parts, shared)
        var room = try Self(
            parts.room,
            settings: parts.settings,
            participants: parts.participants.map(\.unbound),
            streams: parts.streams,
            subscriptions: parts.subscriptions,
            negotiations: nil,
            mirrors: [],
            shared: scene
        )
        guard room.lifecycle.isPlausible else { throw InconsistentParts(cause: "a count is huge") }
        let real = shared
        var transaction = RoomTransaction(shared: scene)
        room.loseTransports(at: node, because: reason, &transaction)
        room.loseTaps(&transaction)
        transaction.forgetWorkers()
        room.placement = Placement(firstWorker: worker)
        for id in Array(room.participants.keys) { room.participants[id]?.session.settleAll() }
        transaction.shared = real
        room.settle(&transaction)
        shared = transaction.shared
        return (room, transaction.change)
    }

    /// Returns workers like those of the other host, without a handle to give.
    private static func scene(
        of parts: ForeignParts,
        _ shared: Shared
    ) throws(InconsistentParts) -> Shared {
        let places = parts.participants.flatMap(\.participant.transports).map(\.place.worker)
        let last = max(places.max() ?? 0, parts.room.firstWorker)
        guard places.allSatisfy({ $0 >= 0 }), (0..<Self.workerLimit).contains(last),
            let local = shared.locals.first
        else { throw InconsistentParts(cause: "no host has so many workers") }
        var scene = shared
        // Numbers of places are the other host's, too.
        scene.remote = nil
        scene.locals = Array(repeating: local, count: last + 1)
        scene.identifiers = scene.locals.map { _ in
            WorkerIdentifiers(transports: 0, publications: 0, slots: 0)
        }
        scene.taps = nil
        return scene
    }

    /// Ends all transports as lost; first, their participants are asked to come.
    private mutating func loseTransports(
        at node: String,
        because reason: MoveReason,
        _ transaction: inout RoomTransaction
    ) {
        let people = participants.values.filter { !$0.transports.isEmpty }
            .sorted { $0.birth < $1.birth }
        for participant in people {
            let wanted = Event.moveWanted(participant: participant.id, node: node, reason)
            transaction.announce(wanted, to: .only([participant.id]))
        }
        for participant in people {
            for transport in participant.transports {
                take(.disconnected(.nodeLost), of: transport.place, &transaction)
            }
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

    /// Workers of a host and places of others; more are a damaged record.
    private static let workerLimit = 512 + RemotePlaces.limit
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

    /// Whether there is something that `withoutSecrets` leaves out.
    package var hasSecrets: Bool { !taps.streamings.isEmpty }
}

extension Room.SavedParticipant {
    /// The same with slots that carry nothing, at the room's home.
    fileprivate var unbound: Self {
        var participant = participant
        participant.node = nil
        for transport in participant.transports.indices {
            for slot in participant.transports[transport].slots.indices {
                participant.transports[transport].slots[slot].bound = nil
            }
        }
        return Self(participant: participant, following: following)
    }
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
