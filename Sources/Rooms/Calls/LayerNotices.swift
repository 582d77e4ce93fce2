package import WorkerInterface

// Workers' reports about simulcast layers, and the room's reaction to them.

extension Room {
    /// Returns the slot and worker that send a subscription's video, if it has a video slot.
    package func videoSeat(of subscription: Subscription) -> (slot: SlotID, worker: Int)? {
        guard let name = subscription.videoSlot,
            let (slot, worker) = seat(name, of: subscription.participant)
        else { return nil }
        return (slot.id, worker)
    }

    /// Records that a worker withholds a subscription's video, or sends it again (`nil`).
    mutating func hold(
        _ number: UInt64,
        because hold: VideoHold?,
        _ transaction: inout RoomTransaction
    ) {
        guard subscriptions[number] != nil else { return }
        subscriptions[number]?.held = hold
        reconcile(subscription: number, &transaction)
    }

    /// Records which encodings of a publication a worker's subscribers need, one bit each.
    mutating func recordDemand(
        _ mask: UInt8,
        of home: RelayTarget,
        by worker: Int,
        _ transaction: inout RoomTransaction
    ) {
        guard let id = stream(with: home) else { return }
        streams[id]?.demand[worker] = mask
        announceDemand(of: home, &transaction)
    }

    /// Announces to the publisher which encodings are needed, if that has changed.
    ///
    /// Recordings and other outputs take the highest encoding there is.
    mutating func announceDemand(of home: RelayTarget, _ transaction: inout RoomTransaction) {
        guard let id = stream(with: home), var stream = streams[id], let track = track(of: home)
        else { return }
        let encodings = track.configuration.encodings.prefix(8)
        let isTapped = taps.read(home)
        let all = isTapped ? UInt8.max : stream.demand.values.reduce(0, |)
        let isNews = encodings.indices.contains { position in
            (all ^ stream.announcedDemand) & (1 << UInt8(position)) != 0
        }
        stream.announcedDemand = all
        streams[id] = stream
        guard isNews else { return }
        let layers = encodings.enumerated().map { position, encoding in
            WantedLayer(rid: encoding.rid, isWanted: all & (1 << UInt8(position)) != 0)
        }
        transaction.announce(.layersWanted(stream, layers), to: .only([stream.participant]))
    }

    private func stream(with home: RelayTarget) -> String? {
        let place = WorkerResource.publication(worker: home.worker, home.publication)
        guard let owner = placement.owner(of: place) else { return nil }
        return participants[owner]?.streams.first { streams[$0]?.home(.video) == home }
    }
}

extension Room {
    /// One encoding of a stream, and whether any subscriber needs it.
    package struct WantedLayer: Hashable, Sendable {
        package var rid: String?
        package var isWanted: Bool
    }
}
