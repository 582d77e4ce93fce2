import WorkerInterface

extension Room {
    func stream(of participant: String, _ transport: String, isScreen: Bool) -> Stream? {
        for id in participants[participant]?.streams ?? [] {
            guard let stream = streams[id] else { continue }
            if stream.transport == transport, stream.isScreen == isScreen { return stream }
        }
        return nil
    }

    func slot(_ name: SlotName, of participant: Participant) -> Slot? {
        participant.transports.first { $0.name == name.transport }?.slots
            .first { $0.mid == name.mid }
    }

    /// Returns a slot and its worker.
    func seat(_ name: SlotName, of participant: String) -> (slot: Slot, worker: Int)? {
        guard
            let transport = participants[participant]?.transports
                .first(where: { $0.name == name.transport }),
            let slot = transport.slots.first(where: { $0.mid == name.mid })
        else { return nil }
        return (slot, transport.place.worker)
    }

    /// Modifies a slot in place; does nothing if it is gone.
    mutating func withSlot(
        _ name: SlotName,
        of participant: String,
        _ body: (inout Slot) -> Void
    ) {
        guard let transports = participants[participant]?.transports,
            let transport = transports.firstIndex(where: { $0.name == name.transport }),
            let slot = transports[transport].slots.firstIndex(where: { $0.mid == name.mid })
        else { return }
        guard var changed = participants[participant]?.transports[transport].slots[slot] else {
            return
        }
        body(&changed)
        participants[participant]?.transports[transport].slots[slot] = changed
    }

    /// Returns the first free slot of a kind, in m-line order.
    ///
    /// A slot that the client plays in sync with the other kind is preferred: with `other`, or with
    /// any free slot if both kinds are to be chosen (`isForBoth`).
    func freeSlot(
        _ kind: MediaKind,
        of participant: Participant,
        beside other: SlotName?,
        isForBoth: Bool
    ) -> SlotName? {
        var first: SlotName?
        for transport in participant.transports where !transport.isSuccessor {
            for slot in transport.slots where slot.kind == kind && slot.isFree {
                let name = SlotName(transport: transport.name, mid: slot.mid)
                let hasPartner = transport.slots.contains { partner in
                    guard partner.kind != kind, partner.pair == slot.pair else { return false }
                    guard let other else { return isForBoth && partner.isFree }
                    return other.transport == transport.name && other.mid == partner.mid
                }
                if hasPartner { return name }
                first = first ?? name
            }
        }
        return first
    }

    /// Returns the slot that a caller named, if it can take the subscription or following.
    func namedSlot(
        _ mid: String,
        _ kind: MediaKind,
        of participant: Participant,
        following: Bool = false
    ) throws(CallError) -> SlotName {
        for transport in participant.transports where !transport.isSuccessor {
            for slot in transport.slots where slot.mid == mid && slot.kind == kind {
                if slot.follows {
                    guard following else {
                        throw .slotFollowsTalkers(mid)
                    }
                } else if slot.subscription != nil {
                    throw .slotInUse(mid)
                }
                return SlotName(transport: transport.name, mid: mid)
            }
        }
        throw .noSuchMid(mid, kind)
    }

    /// Assigns a free slot for each kind that the stream has and the subscription lacks.
    mutating func takeFreeSlots(for number: UInt64) {
        guard var subscription = subscriptions[number], !subscription.follows,
            let stream = streams[subscription.stream],
            let subscriber = participants[subscription.participant]
        else { return }
        for kind in MediaKind.allCases
        where stream.publication(kind) != nil && subscription.slot(kind) == nil {
            let slot = freeSlot(
                kind,
                of: subscriber,
                beside: subscription.slot(kind.other),
                isForBoth: true
            )
            guard let slot else { continue }
            subscription.set(slot, for: kind)
            withSlot(slot, of: subscriber.id) { $0.subscription = number }
        }
        subscriptions[number] = subscription
    }
}

extension Room.Slot {
    /// Whether a new subscription may take the slot.
    fileprivate var isFree: Bool { subscription == nil && !follows }
}

extension MediaKind {
    var other: Self {
        switch self {
        case .audio: .video
        case .video: .audio
        }
    }
}
