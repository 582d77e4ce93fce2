import RTP
import WorkerInterface

// The commands that build the objects of a restored room in workers that have none.

extension Room {
    /// Builds the workers' objects from nothing, and brings up to date whatever the end of the
    /// earlier process has changed.
    ///
    /// Connected transports are resumed, among them those whose worker had not yet told of it.
    /// Those that were connecting wait for their clients, which begin again or give up.
    package mutating func rebuildWorkers(_ shared: inout Shared) -> Change {
        var transaction = RoomTransaction(shared: consume shared)
        defer { shared = transaction.shared }
        let people = participants.values.sorted { $0.birth < $1.birth }
        for transport in people.flatMap(\.transports) {
            let isHere = transaction.shared.node(of: transport.place.worker) == nil
            tellState(of: transport, isResumed: isHere, &transaction)
        }
        tellMirrors(&transaction)
        for transport in people.flatMap(\.transports) {
            // Those of other nodes still have all that they had.
            if transaction.shared.node(of: transport.place.worker) != nil {
                tellRelays(of: transport, &transaction)
            }
            tellBindings(of: transport, &transaction)
        }
        for number in subscriptions.keys.sorted() {
            transaction.open(.subscription(number))
            // The workers withhold nothing yet.
            if subscriptions[number]?.held != nil { hold(number, because: nil, &transaction) }
        }
        restartTaps(&transaction)
        settle(&transaction)
        return transaction.change
    }

    /// Builds anew what a node's workers have of the room, as its process has begun again; `places`
    /// are the workers' numbers.
    package mutating func rebuildWorkers(in places: Set<Int>, _ shared: inout Shared) -> Change {
        var transaction = RoomTransaction(shared: consume shared)
        defer { shared = transaction.shared }
        let there = participants.values.sorted { $0.birth < $1.birth }.flatMap(\.transports)
            .filter { places.contains($0.place.worker) }
        for transport in there { tellState(of: transport, isResumed: true, &transaction) }
        tellMirrors(in: places, &transaction)
        for transport in there {
            tellBindings(of: transport, &transaction)
            // Its workers tell of speech that goes on.
            for track in transport.tracks {
                let id = track.publication
                recordSpeech(.ended, of: .publication(worker: transport.place.worker, id))
            }
        }
        for number in subscriptions.keys.sorted() where subscriptions[number]?.held != nil {
            guard let subscription = subscriptions[number],
                subscription.slots.values.contains(where: { name in
                    seat(name, of: subscription.participant).map { places.contains($0.worker) }
                        ?? false
                })
            else { continue }
            // They withhold nothing yet.
            hold(number, because: nil, &transaction)
        }
        settle(&transaction)
        return transaction.change
    }

    private func tellState(
        of transport: Transport,
        isResumed: Bool,
        _ transaction: inout RoomTransaction
    ) {
        guard var configuration = placement.negotiated[transport.place]?.configuration else {
            return
        }
        let (worker, id) = (transport.place.worker, transport.place.id)
        transaction.open(.transport(worker: worker, id))
        configuration.publications = transport.tracks.map(\.configuration)
        transaction.tell(worker, .configure(id, configuration))
        switch transport.connection {
        case .connected where isResumed, .reconnecting where isResumed:
            transaction.tell(worker, .resume(id, wasConnected: true))
        case .connecting where isResumed:
            transaction.tell(worker, .resume(id, wasConnected: false))
        case .none, .connecting, .connected, .reconnecting, .disconnected: break
        }
        for track in transport.tracks {
            transaction.open(.publication(worker: worker, track.publication))
            guard let gate = track.gate else { continue }
            transaction.tell(worker, .gate(track.publication, open: gate))
        }
    }

    /// Tells the mirrors and where they are fed from, but nothing of those of `gone` publications,
    /// and nothing to workers that are not among `places`, if there are any.
    func tellMirrors(
        exceptOf gone: Set<RelayTarget> = [],
        in places: Set<Int>? = nil,
        _ transaction: inout RoomTransaction
    ) {
        let homes = placement.relays.keys.sorted {
            ($0.worker, $0.publication.index) < ($1.worker, $1.publication.index)
        }
        for home in homes {
            guard let relay = placement.relays[home] else { continue }
            for target in relay.lastSent {
                guard let mirror = relay.mirrors[target.worker] else { continue }
                transaction.open(.publication(worker: target.worker, mirror.id))
                guard !gone.contains(home), places?.contains(target.worker) ?? true else {
                    continue
                }
                transaction.tell(target.worker, .mirror(mirror.lastSent))
            }
            guard !gone.contains(home), places?.contains(home.worker) ?? true else { continue }
            transaction.tell(home.worker, .relay(home.publication, to: relay.lastSent))
        }
    }

    func tellBindings(of transport: Transport, _ transaction: inout RoomTransaction) {
        let worker = transport.place.worker
        for slot in transport.slots {
            guard let feed = slot.bound,
                let publication = placement.publication(feed.home, in: worker)
            else { continue }
            transaction.tell(worker, .bind(slot.id, feed.binding(to: publication)))
        }
    }

    /// Starts live streams and RTP forwards again, and ends recordings.
    ///
    /// A recording's files end where the earlier process ended. An automatic one is followed by
    /// another at once.
    private mutating func restartTaps(_ transaction: inout RoomTransaction) {
        for id in taps.ids {
            guard var tap = taps.remove(id) else { continue }
            guard let worker = transaction.shared.taps?.worker, tap.purpose != .recording else {
                taps.automatic.forget(id)
                if tap.isReady || tap.purpose != .recording, !tap.isAwaited {
                    announceEnd(of: tap, EndReason.restart, by: nil, &transaction)
                }
                continue
            }
            tap.tracks = [:]
            tap.tiles = []
            begin(tap, in: worker, &transaction)
            switch tap.purpose {
            case .recording: break
            case .streaming: transaction.shared.streaming.open += 1
            case .output: transaction.shared.outputs.open += 1
            }
        }
    }
}

extension Room.AutomaticRecording {
    /// Forgets a recording, so that another is begun.
    mutating func forget(_ id: OutputID) {
        if state == .begun(id) || state == .covered(id) { reset() }
    }
}
