import RTP
import WorkerInterface

/// What a viewer missed is sent again from the encoding's history (RFC 4588, RFC 4585 §6.2.1).
extension Core {
    /// What came before a keyframe is sent again for so long, in ms.
    private static let supersededMilliseconds: Int64 = 200

    /// Answers one NACK, within the slot's budget and the output's room.
    mutating func retransmit(
        _ request: borrowing GenericNACK,
        to slot: Int,
        at now: Instant,
        into output: inout Batch
    ) {
        slotRecords[slot].nacksReceived &+= 1
        guard transports[slots[slot].transport].canSend, slots[slot].isOpen else { return }
        if let encoding = encodingBeyondRepair(request, of: slot) {
            return wantKeyframe(of: encoding, at: now)
        }
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

    /// What a slot is sent, if what is asked for begins with what is not kept any more and no
    /// keyframe has made up for since: the picture does not go on for the rest of it.
    ///
    /// Viewers list what is missing from the oldest on. After an outage the rest would only come
    /// late, and have their jitter buffers believe that the path delays by as much.
    private func encodingBeyondRepair(_ request: borrowing GenericNACK, of slot: Int) -> Int? {
        guard slots[slot].kind == .video, case .flowing(let flowing) = slots[slot].source,
            request.count > 0,
            let (span, original, _) = slots[slot].renumbering.original(
                of: request[0].packetID,
                after: slotRecords[slot].earlier
            ), span.encoding == UInt32(bitPattern: flowing)
        else { return nil }
        let encoding = Int(flowing)
        guard encodings[encoding].epoch == span.epoch,
            original < encodings[encoding].history.numbers.lowerBound,
            let keyframe = encodings[encoding].keyframes.lastNumber(in: span.epoch),
            original >= keyframe
        else { return nil }
        return encoding
    }

    /// Whether a picture has begun anew since, and not just now: nobody shows what was before, and
    /// so late it is what the rest of an outage would be.
    private func isSuperseded(_ place: Int32) -> Bool {
        let encoding = Int(pool[place].encoding)
        let epoch = encodings[encoding].epoch
        guard let keyframe = encodings[encoding].keyframes.lastNumber(in: epoch) else {
            return false
        }
        return pool[place].number < keyframe
            && now.milliseconds(since: pool[place].arrival) > Self.supersededMilliseconds
    }

    private mutating func retransmit(
        _ number: SequenceNumber,
        to slot: Int,
        sendTime: UInt32,
        into output: inout Batch
    ) {
        var outlet = outlet(of: slot)
        let numbering = outlet.slot.renumbering
        guard
            let (span, original, index) = numbering.original(
                of: number,
                after: slotRecords[slot].earlier
            ), isUseful(span, to: slot)
        else { return }
        let encoding = Int(span.encoding)
        guard encodings.isOccupied(encoding), encodings[encoding].epoch == span.epoch,
            Int32(encodings[encoding].publication) == slots[slot].publication,
            publications[encodings[encoding].publication].isOpen
        else { return }
        let place = encodings[encoding].history.place(of: Int(original))
        guard place >= 0, slots[slot].incomingPayloadType == pool[place].payloadType,
            !isSuperseded(place),
            let mapping = slotRecords[slot].outgoing
        else { return }
        let bytes = Int(pool[place].payloadLength) + Self.usualOverhead
        guard
            transports[outlet.slot.transport].bandwidth?
                .takeRetransmission(bytes: bytes, at: now) != false
        else { return }
        var rewriting = Rewriting(
            span: span,
            sequence: number,
            payloadType: mapping.payloadType,
            ssrc: outlet.slot.ssrc
        )
        rewriting.opusPayloadType = outlet.slot.opusPayloadType
        rewriting.stripsRED = outlet.slot.stripsRED
        // What was left out has been filled with nothing, and is once more.
        rewriting.isFiller = !pool[place].points.contains(span.point)
        var packetIndex = index
        if let rtx = mapping.rtxPayloadType, let ssrc = slotRecords[slot].configuration.rtxSSRC {
            slotRecords[slot].rtxIndex += 1
            packetIndex = slotRecords[slot].rtxIndex
            rewriting.sequence = SequenceNumber(truncating: Int(packetIndex))
            rewriting.payloadType = rtx
            rewriting.ssrc = ssrc
            rewriting.original = number
            rewriting.stamp(from: &outlet, sendTime: sendTime)
        } else if slots[slot].stampsPackets || index < slotRecords[slot].firstRepeatable {
            // Sent twice under one index it would have to be the same to the last bit.
            return
        } else if rewriting.isFiller {
            rewriting.padding = 1
        }
        let isSent = send(
            place,
            through: &outlet,
            as: rewriting,
            index: packetIndex,
            into: &output
        )
        if isSent {
            if rewriting.original == nil {
                outlet.slot.renumbering.use(index, after: &slotRecords[slot].earlier)
            }
            outlet.slot.retransmissionCredit -= 5
            slotRecords[slot].retransmissions &+= 1
            statistics.rtxOut &+= 1
        }
        put(outlet)
    }

    /// Whether a picture of that span is still worth a repair.
    ///
    /// On a path that is too narrow the keyframe of the encoding that came after makes up for it,
    /// and needs the room.
    private func isUseful(_ span: Renumbering.Span, to slot: Int) -> Bool {
        guard slots[slot].kind == .video, slotRecords[slot].share.value.limit == .bandwidth else {
            return true
        }
        switch slots[slot].source {
        case .idle, .waiting: return false
        case .flowing(let encoding), .switching(from: let encoding, to: _):
            return span.encoding == UInt32(bitPattern: encoding)
        }
    }
}
