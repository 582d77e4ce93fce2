import RTP
import WorkerInterface

/// Forwarding of the batch's packets to one subscriber each.
extension Core {
    /// Longest SRTP authentication tag, in bytes.
    private static let maximumOverhead = 16
    /// IPv4 and UDP headers of one datagram, in bytes.
    private static let datagramOverhead = 28

    mutating func forward(
        _ publication: Int,
        to slot: Int,
        sendTime: UInt32,
        into output: inout Batch
    ) {
        var slotCursor = slotCursor(of: slot)
        guard slotCursor.slot.isOpen, publications[publication].isOpen,
            slotCursor.destination.path != nil
        else { return }
        var place = publications[publication].firstArrival
        while place >= 0 {
            let next = pool[place].next
            if pool[place].flags.contains(.skipped) {
                pass(place, through: &slotCursor, sendTime: sendTime, into: &output)
            } else if let reason = forward(
                place,
                of: publication,
                through: &slotCursor,
                sendTime: sendTime,
                into: &output
            ) {
                if pool[place].drop == .noSubscriber { pool[place].drop = reason }
            } else {
                pool[place].drop = nil
            }
            place = next
        }
        put(slotCursor)
    }

    /// Sends or paces one packet to one subscriber; returns the drop reason if it did neither.
    mutating func forward(
        _ place: Int32,
        of publication: Int,
        through slotCursor: inout SlotCursor,
        sendTime: UInt32,
        into output: inout Batch
    ) -> DropReason? {
        let incoming = pool[place].payloadType
        if slotCursor.slot.incomingPayloadType != incoming {
            remap(&slotCursor, payloadType: incoming, of: publication)
        }
        guard let payloadType = slotCursor.slot.payloadType else { return .noCommonCodec }
        switch admit(place, at: &slotCursor) {
        case .drop(let reason):
            return reason
        case .forward(let span, let index):
            var rewriting = Rewriting(
                span: span,
                sequence: SequenceNumber(truncating: Int(index)),
                payloadType: payloadType,
                ssrc: slotCursor.slot.ssrc
            )
            rewriting.opusPayloadType = slotCursor.slot.opusPayloadType
            rewriting.stripsRED = slotCursor.slot.stripsRED
            if slotCursor.slot.stampsPackets { rewriting.padding = pool[place].padding }
            if !hold(place, through: slotCursor, as: rewriting, index: index) {
                if slotCursor.slot.stampsPackets {
                    rewriting.stamp(from: &slotCursor, sendTime: sendTime)
                }
                guard send(place, through: &slotCursor, as: rewriting, index: index, into: &output)
                else { return .sendFailed }
                statistics.rtpOut &+= 1
            }
            noteUse(of: index, through: slotCursor)
            slotCursor.slot.rewriter.sent(pool[place], index: index, span: span)
            if !slotCursor.slot.isLayerNoted { noteLayer(place, of: &slotCursor) }
            return nil
        case .fill(let span, let index):
            fill(place, index: index, of: span, through: &slotCursor, sendTime, into: &output)
            return .layerNotSelected
        }
    }

    private mutating func admit(_ place: Int32, at slotCursor: inout SlotCursor) -> ForwardDecision
    {
        if let index = slotCursor.slot.nextIndex(of: pool[place]) {
            return .forward(slotCursor.slot.rewriter.current, index: index)
        }
        let slot = slotCursor.index
        return slotCursor.slot.admit(
            pool[place],
            wanted: slotRecords[slot].target.encoding,
            after: &slotRecords[slot].earlier
        )
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
        _ place: Int32,
        through slotCursor: inout SlotCursor,
        sendTime: UInt32,
        into output: inout Batch
    ) {
        let admission = slotCursor.slot.omit(
            pool[place],
            because: .padding,
            after: &slotRecords[slotCursor.index].earlier
        )
        guard case .fill(let span, let index) = admission else { return }
        fill(place, index: index, of: span, through: &slotCursor, sendTime, into: &output)
    }

    /// Sends an empty packet in place of one left out too late to close the numbering over it.
    ///
    /// Without it a subscriber would NACK the gap again and again.
    private mutating func fill(
        _ place: Int32,
        index: Int64,
        of span: RTPRewriter.SequenceSpan,
        through slotCursor: inout SlotCursor,
        _ sendTime: UInt32,
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
        guard send(place, through: &slotCursor, as: rewriting, index: index, into: &output) else {
            return
        }
        noteUse(of: index, through: slotCursor)
        slotCursor.slot.rewriter.filled(index: index)
        statistics.fillersOut &+= 1
        // A filler is no copy of a media packet: fences must not count it.
        slotRecords[slotCursor.index].fencedPackets &+= 1
    }

    /// Writes, encrypts and queues one packet.
    ///
    /// Returns `false` if there is no path, the packet is too long or the SRTP keys are used up.
    mutating func send(
        _ place: Int32,
        through slotCursor: inout SlotCursor,
        as rewriting: Rewriting,
        index: Int64,
        into output: inout Batch
    ) -> Bool {
        guard let path = slotCursor.destination.path else { return false }
        let padding = rewriting.isFiller ? 0 : Int(rewriting.padding)
        let end = Int(pool[place].payloadOffset) + Int(pool[place].payloadLength) + padding
        let packets = pool.packets
        let packet = packets.bytes(at: place, count: end)
        var target = output.next
        let written = PacketWriter.write(
            pool[place],
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
                for: slotCursor
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
            transports[slotCursor.slot.transport].bandwidth?
                .sent(
                    number,
                    bytes: length + Self.datagramOverhead,
                    waited: isReleasing,
                    at: now
                )
        }
        statistics.datagramsOut &+= 1
        statistics.bytesOut &+= UInt64(length)
        return true
    }

    @_lifetime(output: copy output)
    private mutating func protect(
        _ output: inout MutableSpan<UInt8>,
        headerLength: Int,
        prefixLength: Int,
        rest: Span<UInt8>,
        index: UInt64,
        for slotCursor: borrowing SlotCursor
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
    private mutating func remap(
        _ slotCursor: inout SlotCursor,
        payloadType: UInt8,
        of publication: Int
    ) {
        let slot = slotCursor.index
        slotCursor.slot.incomingPayloadType = payloadType
        slotRecords[slot].firstRepeatable = slotCursor.slot.rewriter.highest + 1
        var outgoing: FormatMapping?
        slotCursor.slot.stripsRED = false
        if let format = publications[publication].mapping(of: payloadType)?.format {
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
