package import RTP

/// How far `flush` has come in the batch under way.
struct FlushCursor: BitwiseCopyable {
    var publication = 0
    var subscriber = 0
}

/// Step 7: from each packet of the batch to each of its viewers.
extension Core {
    /// Lets the received batch out, one viewer after the other, so that what goes to one address
    /// lies together.
    ///
    /// Returns `true` where the output is full and more is left: send it and call again.
    package mutating func flush(into output: inout Batch, at now: Instant) -> Bool {
        precondition(output.capacity >= Self.batchCapacity, "a batch must fit the output")
        let sendTime = Self.sendTime(at: now)
        while cursor.publication < queued.count {
            let publication = Int(queued[cursor.publication])
            while cursor.subscriber < publications[publication].subscribers.count {
                guard output.free >= publications[publication].arrivalCount else { return true }
                let slot = Int(publications[publication].subscribers[cursor.subscriber])
                forward(publication, to: slot, sendTime: sendTime, into: &output)
                cursor.subscriber += 1
            }
            settle(publication)
            cursor.publication += 1
            cursor.subscriber = 0
        }
        queued.removeAll()
        cursor = FlushCursor()
        arrivalCount = 0
        pool.reclaim()
        return false
    }

    /// The longest SRTP tag, in bytes.
    private static let maximumOverhead = 16

    /// 6.18 fixed-point seconds of the sender's clock (the abs-send-time extension).
    static func sendTime(at now: Instant) -> UInt32 {
        let microseconds = UInt64(bitPattern: now.nanoseconds / 1_000)
        return UInt32(truncatingIfNeeded: (microseconds << 18) / 1_000_000) & 0xff_ffff
    }

    private mutating func forward(
        _ publication: Int,
        to slot: Int,
        sendTime: UInt32,
        into output: inout Batch
    ) {
        let transport = slots[slot].transport
        guard slots[slot].isOpen, publications[publication].isOpen,
            transports[transport].canSend
        else { return }
        var place = publications[publication].firstArrival
        while place >= 0 {
            let next = pool[place].next
            if pool[place].flags.contains(.skipped) {
                slots[slot].renumbering.skip(pool[place])
            } else if let reason = forward(
                place,
                of: publication,
                to: slot,
                sendTime: sendTime,
                into: &output
            ) {
                if pool[place].drop == .noSubscriber { pool[place].drop = reason }
            } else {
                pool[place].drop = nil
                publications[publication].forwarded &+= 1
            }
            place = next
        }
    }

    /// Sends one packet to one viewer; returns why not, where it was not sent.
    private mutating func forward(
        _ place: Int32,
        of publication: Int,
        to slot: Int,
        sendTime: UInt32,
        into output: inout Batch
    ) -> DropReason? {
        let payloadType = pool[place].payloadType
        if slots[slot].incomingPayloadType != payloadType {
            remap(slot, payloadType: payloadType, of: publication)
        }
        guard let outgoing = slots[slot].outgoing else { return .noCommonCodec }
        switch slots[slot].admit(pool[place], wanted: publications[publication].best) {
        case .drop(let reason):
            return reason
        case .forward(let span, let index):
            var rewriting = Rewriting(
                span: span,
                sequence: SequenceNumber(truncating: Int(index)),
                payloadType: outgoing.payloadType,
                ssrc: slots[slot].configuration.ssrc
            )
            rewriting.opusPayloadType = slots[slot].opusPayloadType
            rewriting.stripsRED = slots[slot].stripsRED
            if slots[slot].stampsPackets { stamp(&rewriting, slot: slot, sendTime: sendTime) }
            guard send(place, to: slot, as: rewriting, index: index, into: &output) else {
                return .sendFailed
            }
            noteSent(place, slot: slot, span: span, index: index)
            return nil
        }
    }

    /// Gives a packet what the path's feedback refers to.
    mutating func stamp(_ rewriting: inout Rewriting, slot: Int, sendTime: UInt32) {
        if slots[slot].extensions[.absoluteSendTime] != 0 { rewriting.sendTime = sendTime }
        guard slots[slot].extensions[.transportSequenceNumber] != 0 else { return }
        let transport = slots[slot].transport
        transports[transport].transportSequence &+= 1
        rewriting.transportSequence = transports[transport].transportSequence
    }

    /// Writes, encrypts and queues one packet; `false` where the keys are used up.
    mutating func send(
        _ place: Int32,
        to slot: Int,
        as rewriting: Rewriting,
        index: Int64,
        into output: inout Batch
    ) -> Bool {
        let transport = slots[slot].transport
        guard let path = transports[transport].path else { return false }
        let end = Int(pool[place].payloadOffset) + Int(pool[place].payloadLength)
        let packets = pool.packets
        let packet = packets.bytes(at: place, count: end)
        var target = output.next
        let written = PacketWriter.write(
            pool[place],
            of: packet,
            for: slots[slot],
            as: rewriting,
            into: &target
        )
        let rest = packet.extracting(written.consumed..<end)
        let total = written.header + written.prefix + rest.count + Self.maximumOverhead
        guard total <= Batch.stride else { return false }
        let length: Int
        do throws(SRTPError) {
            length = try transports[transport].protectRTP(
                &target,
                headerLength: written.header,
                prefixLength: written.prefix,
                rest: rest,
                index: UInt64(bitPattern: index)
            )
        } catch {
            return false
        }
        output.commit(length: length, to: path, as: slots[slot].kind == .audio ? .audio : .video)
        slots[slot].count(length: length, octets: written.prefix + rest.count)
        transports[transport].packetsOut &+= 1
        transports[transport].bytesOut &+= UInt64(length)
        statistics.datagramsOut &+= 1
        statistics.bytesOut &+= UInt64(length)
        return true
    }

    private mutating func noteSent(
        _ place: Int32,
        slot: Int,
        span: Renumbering.Span,
        index: Int64
    ) {
        slots[slot].renumbering.sent(pool[place], index: index, span: span)
        slots[slot].forwarded &+= 1
        statistics.rtpOut &+= 1
        if slots[slot].encodingSent != pool[place].encoding { noteLayer(place, slot: slot) }
    }

    /// Looks up what the viewer calls a codec; RED goes out as plain Opus to those without it.
    private mutating func remap(_ slot: Int, payloadType: UInt8, of publication: Int) {
        slots[slot].incomingPayloadType = payloadType
        slots[slot].firstRepeatable = slots[slot].renumbering.highest + 1
        slots[slot].outgoing = nil
        slots[slot].stripsRED = false
        guard let mapping = publications[publication].mapping(of: payloadType) else { return }
        slots[slot].outgoing = slots[slot].mapping(for: mapping.format)
        if slots[slot].outgoing == nil, mapping.format.codec == .red {
            slots[slot].outgoing = slots[slot].mapping(for: MediaFormat(codec: .opus))
            slots[slot].stripsRED = slots[slot].outgoing != nil
        }
        // What may be sent twice under one packet index must be the same to the last bit.
        slots[slot].stampsPackets =
            slots[slot].kind == .audio || slots[slot].outgoing?.rtxPayloadType != nil
            || slots[slot].outgoing?.feedback.contains(.nack) != true
    }

    /// Counts what became of each packet of the batch: forwarded, or dropped and why.
    private mutating func settle(_ publication: Int) {
        var place = publications[publication].firstArrival
        while place >= 0 {
            count(place, of: publication)
            place = pool[place].next
        }
        publications[publication].removeArrivals()
    }

    private mutating func count(_ place: Int32, of publication: Int) {
        let isMirror = publications[publication].home != nil
        if let drop = pool[place].drop {
            let reason = publications[publication].isOpen ? drop : .gated
            if isMirror { relayDrops.count(reason) } else { drops.count(reason) }
        } else if isMirror {
            statistics.relayedForwarded &+= 1
        } else {
            statistics.rtpForwarded &+= 1
        }
    }

    /// Drops the packets of a publication that ends with the batch under way.
    mutating func discardArrivals(of publication: Int) {
        guard publications[publication].isQueued else { return }
        settle(publication)
        queued.remove(Int32(publication))
        cursor = FlushCursor()
    }
}
