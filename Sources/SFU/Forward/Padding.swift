import RTP
import WorkerInterface

/// Bandwidth probes: padding sent faster than the media, to measure how fast it arrives.
extension Forwarder {
    /// Maximum padding in one packet: its length is one byte (RFC 3550 §5.1).
    private static let longestPadding = 255

    /// Starts a probe of a subscriber's path, if one is due.
    mutating func startProbe(
        of transport: TransportIndex,
        at now: Instant,
        _ transports: inout Transports
    ) {
        guard let probe = transports[transport].bandwidth?.estimator.takeProbe(at: now) else {
            return
        }
        transports[transport].bandwidth?.pacer.start(probe, at: now)
    }

    /// Sends the padding that a running probe needs while no media is paced.
    mutating func pad(
        _ transport: TransportIndex,
        at now: Instant,
        _ transports: inout Transports,
        _ receiver: inout Receiver,
        into output: inout Batch
    ) {
        guard transports[transport].bandwidth?.pacer.currentProbe != nil else { return }
        guard let (slot, payloadType) = paddedSlot(of: transport, transports) else {
            transports[transport].bandwidth?.pacer.cancelProbe()
            return
        }
        while output.free > Batch.replyCapacity / 2,
            transports[transport].bandwidth?.pacer.padding(at: now) != nil
        {
            // On a narrow path, more than the probe needs would queue up before the audio.
            let size = transports[transport].bandwidth?.pacer.paddingPacket ?? 0
            let length = min(max(size - Self.usualOverhead, 1), Self.longestPadding)
            guard
                sendPadding(
                    length,
                    on: slot,
                    payloadType,
                    at: now,
                    &transports,
                    &receiver,
                    into: &output
                )
            else {
                transports[transport].bandwidth?.pacer.cancelProbe()
                return
            }
        }
    }

    /// Returns a slot whose RTX stream can carry padding, so that media streams keep their numbers.
    func paddedSlot(
        of transport: TransportIndex,
        _ transports: borrowing Transports
    ) -> (slot: SlotIndex, payloadType: UInt8)? {
        for index in 0..<transports[transport].slots.count {
            let slot = transports[transport].slots[index]
            guard slots[slot].kind.isVideo, slotRecords[slot].configuration.rtxSSRC != nil,
                slots[slot].extensions[.transportSequenceNumber] != 0
            else { continue }
            let formats = slotRecords[slot].configuration.formats
            let mapping = slotRecords[slot].outgoing ?? formats.first { $0.rtxPayloadType != nil }
            if let payloadType = mapping?.rtxPayloadType { return (slot, payloadType) }
        }
        return nil
    }

    private mutating func sendPadding(
        _ length: Int,
        on slot: SlotIndex,
        _ payloadType: UInt8,
        at now: Instant,
        _ transports: inout Transports,
        _ receiver: inout Receiver,
        into output: inout Batch
    ) -> Bool {
        guard let ssrc = slotRecords[slot].configuration.rtxSSRC else { return false }
        var slotCursor = slotCursor(of: slot, transports)
        guard slotCursor.destination.path != nil else { return false }
        let before = slotCursor.slot
        let index = repairs[slot].next()
        var rewriting = Rewriting(
            span: slotCursor.slot.rewriter.current,
            sequence: SequenceNumber(truncating: Int(index)),
            payloadType: payloadType,
            ssrc: ssrc
        )
        rewriting.padding = UInt8(clamping: length)
        rewriting.stamp(from: &slotCursor, sendTime: Self.sendTime(at: now))
        receiver.pool[receiver.rtcpPlace] = PacketInfo()
        var packets = receiver.pool.packets
        var bytes = packets.mutableBytes(at: receiver.rtcpPlace)
        for position in 0..<length { bytes[position] = 0 }
        bytes[length - 1] = UInt8(clamping: length)
        let isSent = send(
            receiver.rtcpPlace,
            through: &slotCursor,
            as: rewriting,
            index: index,
            at: now,
            &transports,
            receiver,
            into: &output
        )
        if isSent { counters.paddingOut &+= 1 }
        // Padding does not count as the slot's media.
        slotCursor.slot = before
        put(slotCursor, &transports)
        return isSent
    }
}
