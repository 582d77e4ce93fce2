extension Room {
    /// Makes `wanted` the explicit subscriptions of a participant.
    ///
    /// A stream that is watched already keeps its subscription and slots, with the preferences of
    /// the call. What is not named ends first, so that its slots are free for what begins.
    mutating func setSubscriptions(
        of id: String,
        to wanted: [Subscribe],
        by actor: String?,
        _ transaction: inout RoomTransaction
    ) throws(CallError) -> Result {
        try check(actor, actsFor: id)
        let subscriber = try participant(id)
        try checkMayWatch(subscriber)
        let named = Set(wanted.map(\.stream))
        let present = subscriber.subscriptions.compactMap { subscriptions[$0] }
        for subscription in present where !subscription.follows {
            guard !named.contains(subscription.stream) else { continue }
            transaction.isFenced = true
            end(subscription: subscription.number, &transaction)
            speakers.followers.note(id)
        }
        let isFenced = transaction.isFenced
        var results: [Int: Swift.Result<Result, CallError>] = [:]
        // Named slots go first: whatever takes any free slot must not take those.
        for index in wanted.indices.filter({ wanted[$0].namesSlots })
            + wanted.indices.filter({ !wanted[$0].namesSlots })
        {
            do throws(CallError) {
                results[index] = .success(try watch(wanted[index], &transaction))
            } catch {
                results[index] = .failure(error)
            }
        }
        transaction.isFenced = isFenced
        return .each(wanted.indices.compactMap { results[$0] })
    }

    /// Begins a subscription, or gives an existing one the preferences of the call.
    private mutating func watch(
        _ call: Subscribe,
        _ transaction: inout RoomTransaction
    ) throws(CallError) -> Result {
        guard let existing = chosen(call.stream, try participant(call.participant)) else {
            return try subscribe(call, &transaction)
        }
        subscriptions[existing.number]?.preferences = call.preferences
        takeFreeSlots(for: existing.number)
        reconcile(subscription: existing.number, &transaction)
        return .subscribed(existing.number)
    }
}

extension Room.Subscribe {
    fileprivate var namesSlots: Bool { audioMid != nil || videoMid != nil }
}
