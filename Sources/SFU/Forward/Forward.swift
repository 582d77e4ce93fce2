import RTP
import WorkerInterface

/// Forwarding of the batch's packets to one subscriber each.
extension Forwarder {
    /// Longest SRTP authentication tag, in bytes.
    private static let maximumOverhead = 16
    /// IPv4 and UDP headers of one datagram, in bytes.
    private static let datagramOverhead = 28

    /// Forwards the received packets of a publication to one subscriber, or only the packet `held`.
    mutating func forward(
        _ publication: PublicationIndex,
        _ held: PacketPlace? = nil,
        to slot: SlotIndex,
        sendTime: UInt32,
        at now: Instant,
        _ transports: inout Transports,
        _ receiver: inout Receiver,
        into output: inout Batch
    ) {
        var slotCursor = slotCursor(of: slot, transports)
        guard slotCursor.slot.isOpen, receiver.publications[publication].isOpen,
            slotCursor.destination.path != nil
        else { return }
        var next = held ?? receiver.publications[publication].firstArrival
        while let place = next {
            next = held == nil ? receiver.pool[place].next.value : nil
            if receiver.pool[place].flags.contains(.skipped) {
                pass(
                    place,
                    through: &slotCursor,
                    sendTime: sendTime,
                    at: now,
                    &transports,
                    receiver,
                    into: &output
                )
            } else if let reason = forward(
                place,
                of: publication,
                through: &slotCursor,
                sendTime: sendTime,
                at: now,
                &transports,
                receiver,
                into: &output
            ) {
                if receiver.pool[place].drop == .noSubscriber { receiver.pool[place].drop = reason }
            } else {
                receiver.pool[place].drop = nil
            }
        }
        put(slotCursor, &transports)
        guard hasBroken else { return }
        hasBroken = false
        guard let encoding = slotRecords[slot].target?.encoding else { return }
        receiver.requestKeyframe(of: encoding, at: now, &transports)
    }

    /// Sends or paces one packet to one subscriber; returns the drop reason if it did neither.
    private mutating func forward(
        _ place: PacketPlace,
        of publication: PublicationIndex,
        through slotCursor: inout SlotCursor,
        sendTime: UInt32,
        at now: Instant,
        _ transports: inout Transports,
        _ receiver: borrowing Receiver,
        into output: inout Batch
    ) -> DropReason? {
        let incoming = receiver.pool[place].payloadType
        if slotCursor.slot.incomingPayloadType != incoming {
            remap(&slotCursor, payloadType: incoming, of: publication, receiver)
        }
        guard let payloadType = slotCursor.slot.payloadType else { return .noCommonCodec }
        var span = slotCursor.slot.rewriter.current
        let index: Int64
        if let next = slotCursor.slot.nextIndex(of: receiver.pool[place]) {
            index = next
        } else {
            switch decide(place, at: &slotCursor, receiver) {
            case .drop(let reason): return reason
            case .fill(let gap, let missing):
                fill(
                    place,
                    index: missing,
                    of: gap,
                    through: &slotCursor,
                    sendTime,
                    at: now,
                    &transports,
                    receiver,
                    into: &output
                )
                return .layerNotSelected
            case .forward(let found, let number): (span, index) = (found, number)
            }
        }
        return forward(
            place,
            through: &slotCursor,
            as: span,
            index: index,
            payloadType: payloadType,
            sendTime: sendTime,
            at: now,
            &transports,
            receiver,
            into: &output
        )
    }

    /// Sends or paces one packet under the index that it was given.
    @inline(__always)
    mutating func forward(
        _ place: PacketPlace,
        through slotCursor: inout SlotCursor,
        as span: RTPRewriter.SequenceSpan,
        index: Int64,
        payloadType: UInt8,
        sendTime: UInt32,
        at now: Instant,
        _ transports: inout Transports,
        _ receiver: borrowing Receiver,
        into output: inout Batch
    ) -> DropReason? {
        var rewriting = Rewriting(
            span: span,
            sequence: SequenceNumber(truncating: Int(index)),
            payloadType: payloadType,
            ssrc: slotCursor.slot.ssrc
        )
        rewriting.opusPayloadType = slotCursor.slot.opusPayloadType
        rewriting.stripsRED = slotCursor.slot.stripsRED
        if slotCursor.slot.stampsPackets { rewriting.padding = receiver.pool[place].padding }
        if !hold(
            place,
            through: slotCursor,
            as: rewriting,
            index: index,
            at: now,
            &transports,
            receiver
        ) {
            if slotCursor.slot.stampsPackets {
                rewriting.stamp(from: &slotCursor, sendTime: sendTime)
            }
            guard
                send(
                    place,
                    through: &slotCursor,
                    as: rewriting,
                    index: index,
                    at: now,
                    &transports,
                    receiver,
                    into: &output
                )
            else { return .sendFailed }
            counters.rtpOut &+= 1
        }
        noteUse(of: index, through: slotCursor)
        slotCursor.slot.rewriter.sent(receiver.pool[place], index: index, span: span)
        if !slotCursor.slot.isLayerNoted { noteLayer(place, of: &slotCursor, receiver) }
        return nil
    }

    /// Records an index that is used out of order.
    ///
    /// Packets in order do not touch the slot's record.
    private mutating func noteUse(of index: Int64, through slotCursor: borrowing SlotCursor) {
        guard index != slotCursor.slot.rewriter.highest &+ 1 else { return }
        slotCursor.slot.rewriter.use(index, after: &slotRecords[slotCursor.index].earlier)
    }

    /// Leaves out a padding-only packet of the publisher.
    private mutating func pass(
        _ place: PacketPlace,
        through slotCursor: inout SlotCursor,
        sendTime: UInt32,
        at now: Instant,
        _ transports: inout Transports,
        _ receiver: borrowing Receiver,
        into output: inout Batch
    ) {
        let admission = slotCursor.slot.omit(
            receiver.pool[place],
            because: .padding,
            after: &slotRecords[slotCursor.index].earlier
        )
        guard case .fill(let span, let index) = admission else { return }
        fill(
            place,
            index: index,
            of: span,
            through: &slotCursor,
            sendTime,
            at: now,
            &transports,
            receiver,
            into: &output
        )
    }

    /// Sends an empty packet in place of one left out too late to close the numbering over it.
    ///
    /// Without it a subscriber would NACK the gap again and again.
    private mutating func fill(
        _ place: PacketPlace,
        index: Int64,
        of span: RTPRewriter.SequenceSpan,
        through slotCursor: inout SlotCursor,
        _ sendTime: UInt32,
        at now: Instant,
        _ transports: inout Transports,
        _ receiver: borrowing Receiver,
        into output: inout Batch
    ) {
        guard let payloadType = slotCursor.slot.payloadType else { return }
        var rewriting = Rewriting(
            span: span,
            sequence: SequenceNumber(truncating: Int(index)),
            payloadType: payloadType,
            ssrc: slotCursor.slot.ssrc
        )
        rewriting.isFiller = true
        rewriting.padding = 1
        if slotCursor.slot.stampsPackets { rewriting.stamp(from: &slotCursor, sendTime: sendTime) }
        guard
            send(
                place,
                through: &slotCursor,
                as: rewriting,
                index: index,
                at: now,
                &transports,
                receiver,
                into: &output
            )
        else {
            return
        }
        noteUse(of: index, through: slotCursor)
        slotCursor.slot.rewriter.filled(index: index)
        counters.fillersOut &+= 1
        // A filler is no copy of a media packet: fences must not count it.
        slotRecords[slotCursor.index].fencedPackets &+= 1
    }

    /// Writes, encrypts and queues one packet.
    ///
    /// Returns `false` if there is no path, the packet is too long or the SRTP keys are used up.
    @inline(never)
    mutating func send(
        _ place: PacketPlace,
        through slotCursor: inout SlotCursor,
        as rewriting: Rewriting,
        index: Int64,
        at now: Instant,
        _ transports: inout Transports,
        _ receiver: borrowing Receiver,
        into output: inout Batch
    ) -> Bool {
        guard let path = slotCursor.destination.path else { return false }
        let padding = rewriting.isFiller ? 0 : Int(rewriting.padding)
        let end =
            Int(receiver.pool[place].payloadOffset) + Int(receiver.pool[place].payloadLength)
            + padding
        let packets = receiver.pool.packets
        let packet = packets.bytes(at: place, count: end)
        var target = output.next
        let written = PacketWriter.write(
            receiver.pool[place],
            of: packet,
            for: slotCursor.slot,
            longMID: slotCursor.slot.hasLongMID
                ? slotRecords[slotCursor.index].configuration.mid : "",
            as: rewriting,
            into: &target
        )
        let rest = packet.extracting(written.consumed..<end)
        let total = written.header + written.prefix + rest.count + Self.maximumOverhead
        guard total <= Batch.stride else { return false }
        let length: Int
        do throws(SRTPError) {
            length = try protect(
                &target,
                headerLength: written.header,
                prefixLength: written.prefix,
                rest: rest,
                index: UInt64(bitPattern: index),
                for: slotCursor,
                &transports
            )
        } catch {
            return false
        }
        output.commit(
            length: length,
            to: path,
            as: slotCursor.slot.kind.isAudio ? .audio : .video
        )
        let octets = written.prefix + rest.count - Int(rewriting.padding)
        slotCursor.slot.count(length: length, octets: octets)
        slotCursor.destination.count(length: length)
        if let number = rewriting.transportSequence {
            let endsFrame = receiver.pool[place].marks.contains(rewriting.span.point)
            transports[slotCursor.slot.transport].bandwidth?
                .sent(
                    number,
                    bytes: length + Self.datagramOverhead,
                    waited: isReleasing,
                    frame: endsFrame ? OptionalIndex(slotCursor.index) : .none,
                    at: now
                )
        }
        counters.datagramsOut &+= 1
        counters.bytesOut &+= UInt64(length)
        return true
    }

    @_lifetime(output: copy output)
    private mutating func protect(
        _ output: inout MutableSpan<UInt8>,
        headerLength: Int,
        prefixLength: Int,
        rest: Span<UInt8>,
        index: UInt64,
        for slotCursor: borrowing SlotCursor,
        _ transports: inout Transports
    ) throws(SRTPError) -> Int {
        if let key = slotCursor.destination.key {
            return try key.protectRTP(
                &output,
                headerLength: headerLength,
                prefixLength: prefixLength,
                rest: rest,
                index: index
            )
        }
        return try transports[slotCursor.slot.transport].protectRTP(
            &output,
            headerLength: headerLength,
            prefixLength: prefixLength,
            rest: rest,
            index: index
        )
    }

    /// Looks up the subscriber's payload type for a codec; RED falls back to plain Opus.
    mutating func remap(
        _ slotCursor: inout SlotCursor,
        payloadType: UInt8,
        of publication: PublicationIndex,
        _ receiver: borrowing Receiver
    ) {
        let slot = slotCursor.index
        slotCursor.slot.incomingPayloadType = payloadType
        slotRecords[slot].firstRepeatable = slotCursor.slot.rewriter.highest + 1
        var outgoing: FormatMapping?
        slotCursor.slot.stripsRED = false
        if let format = receiver.publications[publication].mapping(of: payloadType)?.format {
            outgoing = slotRecords[slot].configuration.mapping(for: format)
            if outgoing == nil, format.codec == .red {
                outgoing = slotRecords[slot].configuration.mapping(for: MediaFormat(codec: .opus))
                slotCursor.slot.stripsRED = outgoing != nil
            }
        }
        slotRecords[slot].outgoing = outgoing
        slotCursor.slot.payloadType = outgoing?.payloadType
        // Packets that may be sent twice under one packet index must be identical to the last bit,
        // so they carry no send time and no transport-wide sequence number.
        slotCursor.slot.stampsPackets =
            slotCursor.slot.kind.isAudio || outgoing?.rtxPayloadType != nil
            || outgoing?.feedback.contains(.nack) != true
    }
}

extension Rewriting {
    /// Adds the send time and transport-wide sequence number that congestion feedback refers to.
    mutating func stamp(from slotCursor: inout SlotCursor, sendTime: UInt32) {
        if slotCursor.slot.extensions[.absoluteSendTime] != 0 { self.sendTime = sendTime }
        guard slotCursor.slot.extensions[.transportSequenceNumber] != 0 else { return }
        slotCursor.destination.transportSequence &+= 1
        transportSequence = slotCursor.destination.transportSequence
    }
}
