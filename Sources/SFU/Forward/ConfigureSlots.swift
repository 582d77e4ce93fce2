import RTP
import WorkerInterface

/// Creation, binding and removal of slots.
extension Forwarder {
    mutating func add(
        _ configuration: SlotConfiguration,
        transport: TransportIndex,
        random: UInt64,
        rtxRandom: UInt64
    ) {
        let index = configuration.id.place
        slots.insert(
            Slot(configuration, transport: transport, random: random),
            at: configuration.id
        )
        slotRecords.insert(SlotRecord(configuration), at: configuration.id)
        repairs.insert(SavedRepair(random: rtxRandom), at: configuration.id)
        egressOrder.insert(index, transport: transport)
        aside.egressOrder.insert(index, transport: transport)
    }

    /// Applies a new negotiation to a slot.
    mutating func configure(_ configuration: SlotConfiguration) {
        slots[configuration.id.place].configure(configuration)
        slotRecords[configuration.id.place].configuration = configuration
    }

    mutating func removeSlot(
        _ slot: SlotIndex,
        _ transports: inout Transports,
        _ receiver: inout Receiver
    ) {
        revokeRight(of: slot, transports)
        if let publication = slots[slot].publication {
            receiver.publications[publication].subscribers.remove(sorted: slot)
        }
        transports[slots[slot].transport].slots.remove(slot)
        _ = slots.remove(at: slot)
        _ = slotRecords.remove(at: slot)
        _ = repairs.remove(at: slot)
    }

    /// Looks up the payload types again for the next packets to a publication's subscribers.
    mutating func forgetPayloadTypes(
        ofViewersOf publication: PublicationIndex,
        _ receiver: borrowing Receiver
    ) {
        for position in 0..<receiver.publications[publication].subscribers.count {
            slots[receiver.publications[publication].subscribers[position]]
                .incomingPayloadType = 0xff
        }
    }

    /// Lets a slot wait for a source, after the encodings of its publication have ended.
    mutating func loseSource(of slot: SlotIndex) {
        if slots[slot].isOpen { slots[slot].source = .waiting }
        slotRecords[slot].target = nil
        forgetLayer(of: slot)
    }

    /// Unbinds all slots from a publication that ends.
    mutating func loseViewers(
        of publication: PublicationIndex,
        _ transports: borrowing Transports,
        _ receiver: borrowing Receiver
    ) {
        for index in 0..<receiver.publications[publication].subscribers.count {
            let slot = receiver.publications[publication].subscribers[index]
            revokeRight(of: slot, transports)
            slots[slot].publication = nil
            slots[slot].source = .idle
            slots[slot].isOpen = false
        }
    }

    /// Stores the binding's limits, and returns whether they differ from the previous ones.
    mutating func takeLimits(of slot: SlotIndex, from binding: Binding?) -> Bool {
        let preference = binding?.preference ?? .none
        let roleCap = binding?.roleCap ?? .none
        let priority = Int16(clamping: binding?.priority ?? 0)
        let mayFallBack = binding?.mayFallBack ?? true
        let isOther =
            preference != slotRecords[slot].preference || roleCap != slotRecords[slot].roleCap
            || priority != slotRecords[slot].priority
            || mayFallBack != slotRecords[slot].mayFallBack
        slotRecords[slot].preference = preference
        slotRecords[slot].roleCap = roleCap
        slotRecords[slot].priority = priority
        slotRecords[slot].mayFallBack = mayFallBack
        return isOther
    }

    /// Moves a slot from one publication's subscribers to another's, or to none.
    mutating func move(
        _ slot: SlotIndex,
        to publication: PublicationIndex?,
        _ receiver: inout Receiver
    ) {
        if let old = slots[slot].publication {
            receiver.publications[old].subscribers.remove(sorted: slot)
        }
        if let publication {
            receiver.publications[publication].subscribers.insert(sorted: slot)
        }
        slots[slot].publication = publication
        slotRecords[slot].target = nil
        slots[slot].incomingPayloadType = 0xff
        slots[slot].payloadType = nil
        slotRecords[slot].outgoing = nil
    }
}
