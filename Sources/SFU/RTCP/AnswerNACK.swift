import RTP
import WorkerInterface

/// Retransmission of lost packets from the encoding's history (RFC 4588, RFC 4585 §6.2.1).
extension Core {
    /// Age up to which packets before the last keyframe are retransmitted, in ms.
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
        if let encoding = encodingNeedingKeyframe(request, of: slot) {
            return requestKeyframe(of: encoding, at: now)
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

    /// Returns the slot's encoding if a NACK asks first for a packet that cannot be repaired.
    ///
    /// The packet has left the history, and no keyframe came after it, so the picture does not
    /// recover with the rest. Receivers list missing packets from the oldest on. After an outage
    /// the rest would only arrive late and make the jitter buffer expect such delays.
    private func encodingNeedingKeyframe(_ request: borrowing GenericNACK, of slot: Int) -> Int? {
        guard slots[slot].kind == .video, case .flowing(let flowing) = slots[slot].source,
            request.count > 0,
            let (span, original, _) = slots[slot].rewriter.original(
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

    /// Whether a packet precedes the last keyframe and is older than `supersededMilliseconds`.
    ///
    /// No receiver displays such a picture any more, and it would arrive as late as the rest of an
    /// outage.
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
        var slotCursor = slotCursor(of: slot)
        let numbering = slotCursor.slot.rewriter
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
            transports[slotCursor.slot.transport].bandwidth?
                .takeRetransmission(bytes: bytes, at: now) != false
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
        rewriting.isFiller = !pool[place].points.contains(span.point)
        var packetIndex = index
        if let rtx = mapping.rtxPayloadType, let ssrc = slotRecords[slot].configuration.rtxSSRC {
            slotRecords[slot].rtxIndex += 1
            packetIndex = slotRecords[slot].rtxIndex
            rewriting.sequence = SequenceNumber(truncating: Int(packetIndex))
            rewriting.payloadType = rtx
            rewriting.ssrc = ssrc
            rewriting.original = number
            rewriting.stamp(from: &slotCursor, sendTime: sendTime)
        } else if slots[slot].stampsPackets || index < slotRecords[slot].firstRepeatable {
            // A packet sent twice under one index would have to be identical to the last bit.
            return
        } else if rewriting.isFiller {
            rewriting.padding = 1
        }
        let isSent = send(
            place,
            through: &slotCursor,
            as: rewriting,
            index: packetIndex,
            into: &output
        )
        if isSent {
            if rewriting.original == nil {
                slotCursor.slot.rewriter.use(index, after: &slotRecords[slot].earlier)
            }
            slotCursor.slot.retransmissionCredit -= 5
            slotRecords[slot].retransmissions &+= 1
            statistics.rtxOut &+= 1
        }
        put(slotCursor)
    }

    /// Whether a picture of that span is still worth a retransmission.
    ///
    /// On a path that is too narrow, a keyframe of another encoding replaces the picture and needs
    /// the bandwidth.
    private func isUseful(_ span: RTPRewriter.SequenceSpan, to slot: Int) -> Bool {
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
