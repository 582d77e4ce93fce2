internal import RTP

/// What a viewer missed is sent again from the encoding's history (RFC 4588, RFC 4585 §6.2.1).
extension Core {
    /// Answers one NACK, within the slot's budget and the output's room.
    mutating func retransmit(
        _ request: borrowing GenericNACK,
        to slot: Int,
        at now: Instant,
        into output: inout Batch
    ) {
        slots[slot].nacksReceived &+= 1
        guard transports[slots[slot].transport].canSend, slots[slot].isOpen else { return }
        let sendTime = Self.sendTime(at: now)
        for index in 0..<request.count {
            let (first, bitmask) = request[index]
            for step in 0...16 where step == 0 || bitmask & (1 << UInt16(step - 1)) != 0 {
                guard output.free > Self.replyCapacity / 2,
                    slots[slot].retransmissionCredit >= 4
                else { return }
                retransmit(first.advanced(by: step), to: slot, sendTime: sendTime, into: &output)
            }
        }
    }

    private mutating func retransmit(
        _ number: SequenceNumber,
        to slot: Int,
        sendTime: UInt32,
        into output: inout Batch
    ) {
        guard let (span, original, index) = slots[slot].renumbering.original(of: number) else {
            return
        }
        let encoding = Int(span.encoding)
        guard encodings.isOccupied(encoding), encodings[encoding].epoch == span.epoch,
            Int32(encodings[encoding].publication) == slots[slot].publication,
            publications[encodings[encoding].publication].isOpen
        else { return }
        let place = encodings[encoding].history.place(of: Int(original))
        guard place >= 0, slots[slot].incomingPayloadType == pool[place].payloadType,
            let mapping = slots[slot].outgoing
        else { return }
        var rewriting = Rewriting(
            span: span,
            sequence: number,
            payloadType: mapping.payloadType,
            ssrc: slots[slot].configuration.ssrc
        )
        var packetIndex = index
        if let rtx = mapping.rtxPayloadType, let ssrc = slots[slot].configuration.rtxSSRC {
            slots[slot].rtxIndex += 1
            packetIndex = slots[slot].rtxIndex
            rewriting.sequence = SequenceNumber(truncating: Int(packetIndex))
            rewriting.payloadType = rtx
            rewriting.ssrc = ssrc
            rewriting.original = number
            stamp(&rewriting, slot: slot, sendTime: sendTime)
        } else if slots[slot].stampsPackets || index < slots[slot].firstRepeatable {
            // Sent twice under one index it would have to be the same to the last bit.
            return
        }
        guard send(place, to: slot, as: rewriting, index: packetIndex, into: &output) else {
            return
        }
        slots[slot].retransmissionCredit -= 5
        slots[slot].retransmissions &+= 1
        statistics.rtxOut &+= 1
    }
}
