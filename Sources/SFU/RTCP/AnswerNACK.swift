import RTP
import WorkerInterface

/// Retransmission of lost packets from the encoding's history (RFC 4588, RFC 4585 §6.2.1).
extension RTCPEndpoint {
    /// Age up to which packets before the last keyframe are retransmitted, in ms.
    private static let supersededMilliseconds: Int64 = 200

    /// Answers one NACK, within the slot's budget and the output's room.
    mutating func retransmit(
        _ request: borrowing GenericNACK,
        to slot: SlotIndex,
        at now: Instant,
        _ transports: inout Transports,
        _ receiver: inout Receiver,
        _ forwarder: inout Forwarder,
        _ allocator: borrowing LayerAllocator,
        into output: inout Batch
    ) {
        forwarder.slotRecords[slot].nacksReceived &+= 1
        forwarder.noteNACK(of: slot, at: now)
        guard transports[forwarder.slots[slot].transport].canSend, forwarder.slots[slot].isOpen
        else { return }
        let isWarm = forwarder.wasShownWarmPicture(slot, at: now)
        if let encoding = encodingNeedingKeyframe(request, of: slot, isWarm, receiver, forwarder) {
            return receiver.requestKeyframe(of: encoding, at: now, &transports)
        }
        let transport = forwarder.slots[slot].transport
        let copies = transports[transport].bandwidth?.retransmissionCopies ?? 1
        // All packets once, and then again: losses come in bursts. A viewer that loses very much
        // needs its credit for the first copies.
        for copy in 0..<copies
        where copy == 0
            || forwarder.slots[slot].retransmissionCredit > Slot.maximumCredit / 2
        {
            send(
                request,
                to: slot,
                isWarm,
                at: now,
                &transports,
                receiver,
                &forwarder,
                allocator,
                into: &output
            )
        }
    }

    /// Sends each packet of a NACK once.
    private mutating func send(
        _ request: borrowing GenericNACK,
        to slot: SlotIndex,
        _ isWarm: Bool,
        at now: Instant,
        _ transports: inout Transports,
        _ receiver: borrowing Receiver,
        _ forwarder: inout Forwarder,
        _ allocator: borrowing LayerAllocator,
        into output: inout Batch
    ) {
        let sendTime = Forwarder.sendTime(at: now)
        for index in 0..<request.count {
            let (first, bitmask) = request[index]
            for step in 0...16 where step == 0 || bitmask & (1 << UInt16(step - 1)) != 0 {
                guard output.free > Batch.replyCapacity / 2,
                    forwarder.slots[slot].retransmissionCredit >= 4
                else { return }
                retransmit(
                    first.advanced(by: step),
                    to: slot,
                    isWarm,
                    isRequested: true,
                    sendTime: sendTime,
                    at: now,
                    &transports,
                    receiver,
                    &forwarder,
                    allocator,
                    into: &output
                )
            }
        }
    }

    /// Repeats again what was repeated and lost, as the viewer's feedback tells.
    mutating func repeatLost(
        on transport: TransportIndex,
        at now: Instant,
        _ transports: inout Transports,
        _ receiver: borrowing Receiver,
        _ forwarder: inout Forwarder,
        _ allocator: borrowing LayerAllocator,
        into output: inout Batch
    ) {
        guard transports[transport].canSend else { return }
        let sendTime = Forwarder.sendTime(at: now)
        for place in 0..<RecentRepeats.capacity {
            guard output.free > Batch.replyCapacity / 2 else { return }
            guard let lost = transports[transport].bandwidth?.lostRepeat(at: place) else {
                continue
            }
            for index in 0..<transports[transport].slots.count {
                let slot = transports[transport].slots[index]
                guard slot.offset == lost.slot, forwarder.slots[slot].isOpen,
                    forwarder.slots[slot].retransmissionCredit >= 4
                else { continue }
                retransmit(
                    lost.number,
                    to: slot,
                    forwarder.wasShownWarmPicture(slot, at: now),
                    isRequested: false,
                    sendTime: sendTime,
                    at: now,
                    &transports,
                    receiver,
                    &forwarder,
                    allocator,
                    into: &output
                )
            }
        }
    }

    /// Returns the slot's encoding if a NACK asks first for a packet that cannot be repaired.
    ///
    /// The packet has left the history, and no keyframe came after it, so the picture does not
    /// recover with the rest. Receivers list missing packets from the oldest on. After an outage
    /// the rest would only arrive late and make the jitter buffer expect such delays.
    private func encodingNeedingKeyframe(
        _ request: borrowing GenericNACK,
        of slot: SlotIndex,
        _ isWarm: Bool,
        _ receiver: borrowing Receiver,
        _ forwarder: borrowing Forwarder
    ) -> EncodingIndex? {
        guard forwarder.slots[slot].kind == .video,
            case .flowing(let flowing) = forwarder.slots[slot].source,
            request.count > 0,
            let (span, original, _) = forwarder.slots[slot].rewriter.original(
                of: request[0].packetID,
                after: forwarder.slotRecords[slot].earlier
            ), span.encoding.value == flowing
        else { return nil }
        let encoding = flowing
        guard receiver.encodings[encoding].epoch == span.epoch,
            receiver.encodings[encoding].history.hasLost(Int(original), isWarm: isWarm),
            let keyframe = receiver.encodings[encoding].keyframes.lastNumber(in: span.epoch),
            original >= keyframe
        else { return nil }
        return encoding
    }

    /// Whether a packet precedes the last keyframe and is older than `supersededMilliseconds`.
    ///
    /// No receiver displays such a picture any more, and it would arrive as late as the rest of an
    /// outage.
    private func isSuperseded(
        _ place: PacketPlace,
        at now: Instant,
        _ receiver: borrowing Receiver
    ) -> Bool {
        let encoding = receiver.pool[place].encoding
        let epoch = receiver.encodings[encoding].epoch
        guard let keyframe = receiver.encodings[encoding].keyframes.lastNumber(in: epoch) else {
            return false
        }
        return receiver.pool[place].number < keyframe
            && now.milliseconds(since: receiver.pool[place].arrival) > Self.supersededMilliseconds
    }

    private mutating func retransmit(
        _ number: SequenceNumber,
        to slot: SlotIndex,
        _ isWarm: Bool,
        isRequested: Bool,
        sendTime: UInt32,
        at now: Instant,
        _ transports: inout Transports,
        _ receiver: borrowing Receiver,
        _ forwarder: inout Forwarder,
        _ allocator: borrowing LayerAllocator,
        into output: inout Batch
    ) {
        var slotCursor = forwarder.slotCursor(of: slot, transports)
        let numbering = slotCursor.slot.rewriter
        guard
            let (span, original, index) = numbering.original(
                of: number,
                after: forwarder.slotRecords[slot].earlier
            ), isUseful(span, to: slot, forwarder, allocator)
        else { return }
        guard let encoding = span.encoding.value, receiver.encodings.isOccupied(encoding),
            receiver.encodings[encoding].epoch == span.epoch,
            receiver.encodings[encoding].publication == forwarder.slots[slot].publication,
            receiver.publications[receiver.encodings[encoding].publication].isOpen
        else { return }
        guard
            let place = receiver.encodings[encoding].history
                .place(toRepeat: Int(original), isWarm: isWarm)
        else { return }
        if isRequested {
            forwarder.noteLoss(of: receiver.pool[place].arrival, through: slot, at: now)
        }
        guard forwarder.slots[slot].incomingPayloadType == receiver.pool[place].payloadType,
            !isSuperseded(place, at: now, receiver),
            let mapping = forwarder.slotRecords[slot].outgoing
        else { return }
        let transport = slotCursor.slot.transport
        let bytes = Int(receiver.pool[place].payloadLength) + Forwarder.usualOverhead
        guard
            mayRepeat(
                number,
                of: slot,
                bytes: bytes,
                isRequested: isRequested,
                at: now,
                &transports[transport]
            )
        else { return }
        var rewriting = Rewriting(
            span: span,
            sequence: number,
            payloadType: mapping.payloadType,
            ssrc: slotCursor.slot.ssrc
        )
        rewriting.opusPayloadType = slotCursor.slot.opusPayloadType
        rewriting.stripsRED = slotCursor.slot.stripsRED
        // A packet that was replaced by a filler is replaced by one again.
        rewriting.isFiller = !receiver.pool[place].points.contains(span.point)
        var packetIndex = index
        if let rtx = mapping.rtxPayloadType,
            let ssrc = forwarder.slotRecords[slot].configuration.rtxSSRC
        {
            packetIndex = forwarder.repairs[slot].next()
            rewriting.sequence = SequenceNumber(truncating: Int(packetIndex))
            rewriting.payloadType = rtx
            rewriting.ssrc = ssrc
            rewriting.original = number
            rewriting.stamp(from: &slotCursor, sendTime: sendTime)
        } else if forwarder.slots[slot].stampsPackets
            || index < forwarder.slotRecords[slot].firstRepeatable
        {
            // A packet sent twice under one index would have to be identical to the last bit.
            return
        } else if rewriting.isFiller {
            rewriting.padding = 1
        }
        let isSent = forwarder.send(
            place,
            through: &slotCursor,
            as: rewriting,
            index: packetIndex,
            at: now,
            &transports,
            receiver,
            into: &output
        )
        if isSent {
            if rewriting.original == nil {
                slotCursor.slot.rewriter.use(index, after: &forwarder.slotRecords[slot].earlier)
            }
            slotCursor.slot.retransmissionCredit -= 5
            forwarder.slotRecords[slot].retransmissions &+= 1
            counters.rtxOut &+= 1
            let copy = rewriting.transportSequence
            transports[transport].bandwidth?.noteRepeat(of: number, of: slot, as: copy, at: now)
        }
        forwarder.put(slotCursor, &transports)
    }

    /// Whether a packet may be repeated now on its viewer's path; counts a request otherwise.
    private mutating func mayRepeat(
        _ number: SequenceNumber,
        of slot: SlotIndex,
        bytes: Int,
        isRequested: Bool,
        at now: Instant,
        _ transport: inout Transport
    ) -> Bool {
        if transport.bandwidth?.isRepeated(number, of: slot, at: now) == true {
            if isRequested { counters.rtxInFlight &+= 1 }
            return false
        }
        if transport.bandwidth?.takeRetransmission(bytes: bytes, at: now) == false {
            if isRequested { counters.rtxOverBudget &+= 1 }
            return false
        }
        return true
    }

    /// Whether a picture of that span is still worth a retransmission.
    ///
    /// On a path that is too narrow, a keyframe of another encoding replaces the picture and needs
    /// the bandwidth.
    private func isUseful(
        _ span: RTPRewriter.SequenceSpan,
        to slot: SlotIndex,
        _ forwarder: borrowing Forwarder,
        _ allocator: borrowing LayerAllocator
    ) -> Bool {
        guard forwarder.slots[slot].kind == .video, allocator.shares[slot].value.limit == .bandwidth
        else {
            return true
        }
        switch forwarder.slots[slot].source {
        case .idle, .waiting: return false
        case .flowing(let encoding), .switching(from: let encoding, to: _):
            return span.encoding.value == encoding
        }
    }
}
