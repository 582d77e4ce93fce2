import WorkerInterface

extension Room {
    mutating func subscribe(
        _ call: Subscribe,
        _ transaction: inout RoomTransaction
    ) throws(CallError) -> Result {
        let subscriber = try participant(call.participant)
        let stream = try stream(call.stream)
        if call.returnsExisting, let existing = chosen(stream.id, subscriber) {
            return .subscribed(existing.number)
        }
        let slots = try slots(for: call, stream, subscriber, transaction.shared.limits)
        try checkHandles(for: slots, of: subscriber, carrying: stream, transaction.shared)

        transaction.shared.lastSubscription += 1
        let number = transaction.shared.lastSubscription
        var subscription = Subscription(
            number: number,
            participant: subscriber.id,
            stream: stream.id,
            preferences: call.preferences
        )
        for (kind, slot) in slots {
            subscription.set(slot, for: kind)
            withSlot(slot, of: subscriber.id) { $0.subscription = number }
        }
        subscriptions[number] = subscription
        participants[subscriber.id]?.subscriptions.append(number)
        streams[stream.id]?.subscribers.insert(number)
        open(.subscription(number), for: subscriber.id, &transaction)
        speakers.followers.note(subscriber.id)
        reconcile(subscription: number, &transaction)
        return .subscribed(number)
    }

    /// Returns the slots of a new subscription; free ones if none are named.
    private func slots(
        for call: Subscribe,
        _ stream: Stream,
        _ subscriber: Participant,
        _ limits: Limits
    ) throws(CallError) -> [MediaKind: SlotName] {
        try checkMayWatch(stream, subscriber)
        guard subscriber.subscriptions.count < limits.subscriptionsPerParticipant else {
            throw .limitReached(
                "subscriptionsPerParticipant",
                limits.subscriptionsPerParticipant
            )
        }
        var slots: [MediaKind: SlotName] = [:]
        if let mid = call.audioMid { slots[.audio] = try namedSlot(mid, .audio, of: subscriber) }
        if let mid = call.videoMid { slots[.video] = try namedSlot(mid, .video, of: subscriber) }
        for kind in MediaKind.allCases
        where slots[kind] == nil && stream.publication(kind) != nil {
            slots[kind] = freeSlot(
                kind,
                of: subscriber,
                beside: slots[kind.other],
                isForBoth: stream.publication(kind.other) != nil
            )
        }
        guard !slots.isEmpty else {
            throw .noFreeSlot
        }
        return slots
    }

    /// Checks that `subscriber` may have subscriptions.
    ///
    /// One that awaits approval may: their gates are closed until it is admitted.
    func checkMayWatch(_ subscriber: Participant) throws(CallError) {
        guard subscriber.mode != .signallingOnly else {
            throw .signallingOnly(subscriber.id)
        }
    }

    /// Checks that `subscriber` may subscribe to a stream that it does not receive yet.
    ///
    /// A subscription made by following slots does not count; the new one replaces it.
    private func checkMayWatch(_ stream: Stream, _ subscriber: Participant) throws(CallError) {
        try checkMayWatch(subscriber)
        if let publisher = participants[stream.participant],
            mayReceive(from: publisher, subscriber) == .closed(.role)
        {
            throw .roleMayNotWatch(subscriber.role, publisher.role)
        }
        guard let existing = chosen(stream.id, subscriber) else { return }
        throw .alreadyExists(subscription: existing.id, to: stream.id)
    }

    /// Returns the explicit subscription of a participant to a stream.
    func chosen(_ stream: String, _ subscriber: Participant) -> Subscription? {
        subscriber.subscriptions.lazy.compactMap { subscriptions[$0] }
            .first { $0.stream == stream && !$0.follows }
    }

    mutating func update(
        subscription id: String,
        _ call: SubscriptionUpdate,
        _ transaction: inout RoomTransaction
    ) throws(CallError) {
        var subscription = try subscription(id)
        let number = subscription.number
        transaction.isFenced = call.audio == false || call.video == false
        if let target = call.stream, target != subscription.stream {
            try checkIsChosen(subscription)
            let stream = try stream(target)
            let subscriber = try participant(subscription.participant)
            try checkMayWatch(stream, subscriber)
            let slots = subscription.slots
            try checkHandles(for: slots, of: subscriber, carrying: stream, transaction.shared)
            streams[subscription.stream]?.subscribers.remove(number)
            streams[target]?.subscribers.insert(number)
            speakers.followers.note(subscriber.id)
            subscription.stream = target
            transaction.isFenced = true
        }
        subscription.audioOn = call.audio ?? subscription.audioOn
        subscription.videoOn = call.video ?? subscription.videoOn
        switch call.size {
        case .keep: break
        case .clear:
            subscription.preferences.width = nil
            subscription.preferences.height = nil
        case .set(let size):
            subscription.preferences.width = size.width
            subscription.preferences.height = size.height
        }
        subscription.preferences.frameRate = call.frameRate.applied(
            to: subscription.preferences.frameRate
        )
        subscription.preferences.priority = call.priority.applied(
            to: subscription.preferences.priority
        )
        subscription.preferences.audioFallback = call.audioFallback.applied(
            to: subscription.preferences.audioFallback
        )
        subscriptions[number] = subscription
        takeFreeSlots(for: number)
        reconcile(subscription: number, &transaction)
    }

    mutating func unsubscribe(
        _ id: String,
        _ transaction: inout RoomTransaction
    ) throws(CallError) {
        let subscription = try subscription(id)
        try checkIsChosen(subscription)
        transaction.isFenced = true
        end(subscription: subscription.number, &transaction)
        speakers.followers.note(subscription.participant)
    }

    /// Checks that a subscription is explicit.
    ///
    /// One made by following slots is changed only by `talkers.subscribe`.
    private func checkIsChosen(_ subscription: Subscription) throws(CallError) {
        guard !subscription.follows else {
            throw .followsTalkers(subscription.id)
        }
    }
}
