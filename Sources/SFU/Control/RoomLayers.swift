// What workers find out about layers, and what the room makes of it.

extension Room {
    /// Where a subscription's video goes out, if it has a slot for it.
    package func videoSeat(of subscription: Subscription) -> (slot: SlotID, worker: Int)? {
        guard let name = subscription.videoSlot,
            let (slot, worker) = seat(name, of: subscription.participant)
        else { return nil }
        return (slot.id, worker)
    }

    /// A worker sends no video to a subscription, or does so again.
    mutating func hold(
        _ number: UInt64,
        because hold: VideoHold?,
        _ shared: inout Shared,
        _ change: inout Change
    ) {
        guard subscriptions[number] != nil else { return }
        subscriptions[number]?.held = hold
        settle(subscription: number, &shared, &change)
    }

    /// A worker says which encodings of a publication its viewers watch.
    ///
    /// The publisher hears of it when that makes a difference to what anybody watches.
    mutating func want(
        _ mask: UInt8,
        of home: RelayTarget,
        by worker: Int,
        _ change: inout Change
    ) {
        let place = Place.publication(worker: home.worker, home.publication)
        guard let owner = owners[place], let track = track(of: home) else { return }
        for id in participants[owner]?.streams ?? [] {
            guard var stream = streams[id], stream.home(.video) == home else { continue }
            let encodings = track.configuration.encodings.prefix(8)
            stream.wanted[worker] = mask
            let all = stream.wanted.values.reduce(0, |)
            let isNews = encodings.indices.contains { position in
                (all ^ stream.wantedTold) & (1 << UInt8(position)) != 0
            }
            stream.wantedTold = all
            streams[id] = stream
            guard isNews else { return }
            let layers = encodings.enumerated().map { position, encoding in
                WantedLayer(rid: encoding.rid, isWanted: all & (1 << UInt8(position)) != 0)
            }
            change.announce(.layersWanted(stream, layers), to: .only([owner]))
        }
    }
}

extension Room {
    /// One encoding of a stream, and whether anybody is there for it.
    package struct WantedLayer: Hashable, Sendable {
        package var rid: String?
        package var isWanted: Bool
    }
}
