package import WorkerInterface

extension Room {
    /// Worker event about an object that this room owns.
    package enum Notice: Hashable, Sendable {
        case transport(TransportLocation, TransportChange)
        case started(subscription: UInt64)
        case layerChanged(
            subscription: UInt64,
            worker: Int,
            SlotID,
            from: LayerName?,
            to: LayerName?
        )
        case layers(worker: Int, PublicationID, codec: Codec, [LayerDescription])
        case videoHeld(subscription: UInt64, worker: Int, SlotID, VideoHold?)
        case layersWanted(worker: Int, home: RelayTarget, UInt8)
        case speech(worker: Int, PublicationID, SpeechChange)
        case tapStarted(OutputID)
        case tapInterrupted(OutputID, cause: String)
        case tapResumed(OutputID)
        case tapEnded(OutputID, reason: String?)
    }

    /// Handles a worker's notice; one about an object that is gone has no effect.
    mutating func handle(_ notice: Notice, _ transaction: inout RoomTransaction) {
        switch notice {
        case .transport(let place, let what): take(what, of: place, &transaction)
        case .started(let subscription): start(subscription, &transaction)
        case .layerChanged(let number, let worker, let slot, let from, let to):
            guard let subscription = subscriptions[number],
                holds(subscription, slot, in: worker)
            else { break }
            transaction.announce(
                .layerChanged(subscription, from: from, to: to),
                to: .only([subscription.participant])
            )
        case .layers(let worker, let publication, let codec, let layers):
            let place = WorkerResource.publication(worker: worker, publication)
            see(layers, codec, of: place, &transaction)
        case .videoHeld(let number, let worker, let slot, let reason):
            guard let subscription = subscriptions[number],
                holds(subscription, slot, in: worker)
            else { break }
            hold(number, because: reason, &transaction)
        case .layersWanted(let worker, let home, let mask):
            recordDemand(mask, of: home, by: worker, &transaction)
        case .speech(let worker, let publication, let what):
            recordSpeech(what, of: .publication(worker: worker, publication))
        case .tapStarted(let id): begun(tap: id, &transaction)
        case .tapInterrupted(let id, let cause): interrupted(tap: id, cause, &transaction)
        case .tapResumed(let id): resumed(tap: id, &transaction)
        case .tapEnded(let id, let reason): ended(tap: id, reason, &transaction)
        }
    }

    private mutating func start(_ number: UInt64, _ transaction: inout RoomTransaction) {
        guard var subscription = subscriptions[number], !subscription.connected else { return }
        subscription.connected = true
        subscriptions[number] = subscription
        transaction.announce(
            .subscriptionConnected(subscription),
            to: .only([subscription.participant])
        )
    }

    private mutating func see(
        _ layers: [LayerDescription],
        _ codec: Codec,
        of place: WorkerResource,
        _ transaction: inout RoomTransaction
    ) {
        guard let owner = placement.owner(of: place), case .publication(let worker, let id) = place
        else { return }
        for name in participants[owner]?.streams ?? [] {
            guard var stream = streams[name], stream.worker == worker else { continue }
            let before = (stream.audioCodec, stream.videoCodec, stream.layers)
            let isNew = !stream.hasVideoCome || stream.videoCodec != codec
            if stream.audio == id {
                stream.audioCodec = codec
            } else if stream.video == id {
                stream.videoCodec = codec
                stream.layers = layers
                stream.hasVideoCome = true
            }
            streams[name] = stream
            if before != (stream.audioCodec, stream.videoCodec, stream.layers) {
                transaction.announce(.streamChanged(stream), to: .everyone)
            }
            guard isNew, stream.video == id else { continue }
            for number in stream.subscribers.sorted() {
                reconcile(subscription: number, &transaction)
            }
        }
    }

    /// Takes a change of a transport's connection.
    mutating func take(
        _ what: TransportChange,
        of place: TransportLocation,
        _ transaction: inout RoomTransaction
    ) {
        guard let id = placement.owner(of: .transport(worker: place.worker, place.id)),
            let participant = participants[id],
            let index = participant.transports.firstIndex(where: { $0.place == place })
        else { return }
        let name = participant.transports[index].name
        guard !participant.transports[index].isSuccessor else {
            return take(what, ofSuccessor: participant.transports[index], of: id, &transaction)
        }
        let connection: Connection =
            switch what {
            case .connected, .reconnected: .connected
            case .reconnecting: .reconnecting
            case .disconnected: .disconnected
            }
        participants[id]?.transports[index].connection = connection
        noteConnection(of: id, ifNone: connection)
        transaction.announce(
            .connection(participant: id, transport: name, what),
            to: participant.admitted ? .everyone : .only([id])
        )
        switch what {
        case .connected: break
        case .reconnecting: interrupt(id, name, &transaction)
        case .reconnected: resume(id, name, &transaction)
        case .disconnected:
            end(transport: name, of: id, EndReason.disconnected, &transaction)
            let hasSuccessor = promoteSuccessor(of: name, of: id)
            noteConnection(of: id, ifNone: .disconnected)
            noteLoss(of: id, at: transaction.shared.now)
            moderation.hosts.expect(id, at: transaction.shared.now)
            reconcile(publisher: id, ending: EndReason.disconnected, &transaction)
            if hasSuccessor { tellNode(of: id, &transaction) }
        }
    }

    /// Sets a participant's connection state to that of its best transport.
    mutating func noteConnection(of id: String, ifNone last: Connection) {
        let order: [Connection] = [.connected, .reconnecting, .connecting, .disconnected]
        let present = participants[id]?.transports.map(\.connection) ?? []
        participants[id]?.connection = order.first { present.contains($0) } ?? last
    }

    /// Announces to subscribers that a transport's streams are interrupted.
    private func interrupt(_ id: String, _ transport: String, _ transaction: inout RoomTransaction)
    {
        for subscription in watchers(of: id, transport) {
            transaction.announce(
                .subscriptionDisconnected(subscription, isFinal: false, .publisher),
                to: .only([subscription.participant])
            )
        }
    }

    func resume(_ id: String, _ transport: String, _ transaction: inout RoomTransaction) {
        for subscription in watchers(of: id, transport) {
            transaction.announce(
                .subscriptionReconnected(subscription),
                to: .only([subscription.participant])
            )
        }
        // The disconnected participant itself could not be reached at the time.
        for subscription in participants[id]?.subscriptions.compactMap({ subscriptions[$0] }) ?? []
        where subscription.connected && subscription.slotName?.transport == transport {
            transaction.announce(
                .subscriptionDisconnected(subscription, isFinal: false, .transport),
                to: .only([id])
            )
            transaction.announce(.subscriptionReconnected(subscription), to: .only([id]))
        }
    }

    /// Returns others' connected subscriptions to streams of this transport.
    private func watchers(of id: String, _ transport: String) -> [Subscription] {
        var found: [Subscription] = []
        for name in participants[id]?.streams ?? [] {
            guard let stream = streams[name], stream.transport == transport else { continue }
            for number in stream.subscribers.sorted() {
                guard let subscription = subscriptions[number], subscription.connected,
                    subscription.participant != id
                else { continue }
                found.append(subscription)
            }
        }
        return found
    }

    private func holds(_ subscription: Subscription, _ slot: SlotID, in worker: Int) -> Bool {
        subscription.slots.values.contains { name in
            guard let seat = seat(name, of: subscription.participant) else { return false }
            return seat.slot.id == slot && seat.worker == worker
        }
    }
}

extension Room.Subscription {
    fileprivate var slotName: Room.SlotName? { audioSlot ?? videoSlot }
}
