import WorkerInterface

extension Room {
    /// Ends a stream with all its subscriptions and announces only the stream's end.
    mutating func end(stream id: String, _ reason: String, _ transaction: inout RoomTransaction) {
        guard let stream = streams[id] else { return }
        for number in stream.subscribers.sorted() { end(subscription: number, &transaction) }
        countSent(stream, nil, at: transaction.shared.now)
        streams[id] = nil
        participants[stream.participant]?.streams.removeAll { $0 == id }
        speakers.isStale = true
        transaction.announce(.streamDestroyed(stream, reason: reason), to: .everyone)
    }

    /// Ends a subscription and empties its slots.
    mutating func end(subscription number: UInt64, _ transaction: inout RoomTransaction) {
        guard var subscription = subscriptions.removeValue(forKey: number) else { return }
        for kind in MediaKind.allCases {
            countEnd(of: kind, in: &subscription, at: transaction.shared.now)
            guard let name = subscription.slot(kind) else { continue }
            unbind(name, of: subscription.participant, &transaction)
            withSlot(name, of: subscription.participant) { $0.subscription = nil }
        }
        streams[subscription.stream]?.subscribers.remove(number)
        participants[subscription.participant]?.subscriptions.removeAll { $0 == number }
        free(.subscription(number), &transaction)
    }

    /// Closes a transport.
    ///
    /// Its streams end with `reason`; its subscriptions end without an announcement.
    mutating func end(
        transport name: String,
        of id: String,
        _ reason: String,
        _ transaction: inout RoomTransaction
    ) {
        guard let participant = participants[id],
            let transport = participant.transports.first(where: { $0.name == name })
        else { return }
        for slot in transport.slots {
            let name = SlotName(transport: name, mid: slot.mid)
            stopFollowing(name, of: id, &transaction)
            // Read the slot again: `stopFollowing` may have released it.
            if let (slot, _) = seat(name, of: id) { release(slot, name, &transaction) }
        }
        for stream in participant.streams where streams[stream]?.transport == name {
            end(stream: stream, reason, &transaction)
        }
        silence(transport, &transaction)
        participants[id]?.transports.removeAll { $0.name == name }
        close(transport, of: id, &transaction)
        rank(id)
    }

    /// Closes a transport that its participant no longer has.
    mutating func close(
        _ transport: Transport,
        of id: String,
        _ transaction: inout RoomTransaction
    ) {
        let worker = transport.place.worker
        transaction.close(transport.place)
        for track in transport.tracks {
            free(.publication(worker: worker, track.publication), &transaction)
        }
        for slot in transport.slots { free(.slot(worker: worker, slot.id), &transaction) }
        free(.transport(worker: worker, transport.place.id), &transaction)
        participants[id]?.session.end(transport.place)
        placement.ending[transport.place] = id
    }

    /// Closes the gates of a transport that is closed only after its end has been announced.
    private func silence(_ transport: Transport, _ transaction: inout RoomTransaction) {
        guard transaction.announcesFirst else { return }
        for track in transport.tracks where track.gate == true {
            transaction.tell(transport.place.worker, .gate(track.publication, open: false))
        }
    }

    /// Takes a slot from its subscription, and ends the subscription if that was its only slot.
    ///
    /// - Returns: the subscription if it has ended.
    @discardableResult
    mutating func release(
        _ slot: Slot,
        _ name: SlotName,
        _ transaction: inout RoomTransaction
    ) -> Subscription? {
        guard let number = slot.subscription, var subscription = subscriptions[number] else {
            return nil
        }
        guard subscription.slot(slot.kind.other) != nil else {
            end(subscription: number, &transaction)
            return subscription
        }
        unbind(name, of: subscription.participant, &transaction)
        withSlot(name, of: subscription.participant) { $0.subscription = nil }
        subscription.set(nil, for: slot.kind)
        countEnd(of: slot.kind, in: &subscription, at: transaction.shared.now)
        // A lost slot gets no further video events.
        if slot.kind == .video { subscription.videoDisabled = nil }
        subscriptions[number] = subscription
        return nil
    }

    /// Removes a participant and everything it has in the room.
    mutating func remove(_ id: String, _ reason: String, _ transaction: inout RoomTransaction) {
        guard let participant = participants[id] else { return }
        for transport in participant.transports {
            end(transport: transport.name, of: id, reason, &transaction)
        }
        participants[id] = nil
        moderation.hosts.remove(id)
        moderation.formerModerators.note(participant, leaving: reason)
        moderation.keepMutes(of: participant)
        // Somebody who is dropped is not spared after coming back.
        if reason == EndReason.dropped || reason == EndReason.denied,
            moderation.mute?.caller == id
        {
            moderation.mute?.caller = nil
        }
        forget(participant, &transaction)
    }

    /// Closes the room at a caller's request.
    mutating func close(
        by actor: String?,
        _ reason: String,
        detail: String?,
        _ transaction: inout RoomTransaction
    ) throws(CallError) {
        try check(
            actor,
            may: .close,
            orElse: .seed(5116, "closing the room needs the permission close")
        )
        transaction.isFenced = true
        close(reason, detail: detail, by: actor, &transaction)
    }

    /// Closes the room and removes all participants.
    mutating func close(
        _ reason: String,
        detail: String? = nil,
        by actor: String?,
        _ transaction: inout RoomTransaction
    ) {
        let closed = reason == EndReason.shutdown ? reason : EndReason.roomClosed
        forgetAll()
        endTaps(closed, by: actor, &transaction)
        let leaving = members + awaited
        for participant in leaving { remove(participant.id, closed, &transaction) }
        for participant in leaving {
            // `closed` tells all that all leave. An account is for its participant alone, so that
            // the audiences of a large room have no more members than the room.
            let left = Event.left(participant, reason: closed, detail: detail)
            transaction.announce(left, to: .only([participant.id]))
        }
        transaction.announce(.closed(reason: reason, detail: detail, by: actor), to: .everyone)
        if settings.kind.isLiveEvent { lifecycle.state = .ended }
        lifecycle.isClosed = true
    }
}
