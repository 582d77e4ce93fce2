import RTP
import WorkerInterface

/// Packet in a subscriber's pacer: numbered, but not written.
///
/// Its bytes stay in the history of its encoding. If they are gone when its turn comes, the packet
/// is too old, or the permission to send it was revoked.
struct PacedPacket: BitwiseCopyable {
    var slot: SlotID
    var place: PacketPlace
    /// Packet number, which identifies it in the history.
    var number: Int64
    /// Packet index under which it will be sent.
    var index: Int64
    var rewriting: Rewriting
    /// Whether it must not be sent any more: its permission was revoked, or its place is free.
    var isVoid = false
    /// Next free place, if this one is free.
    var nextFree: Int?
}

/// Pacing: large frames leave over a few milliseconds, as fast as the path takes them.
extension Forwarder {
    /// Sends a transport's paced packets that are due, and updates its estimate and its probe.
    mutating func expireBandwidth(
        of transport: TransportIndex,
        at now: Instant,
        _ transports: inout Transports,
        _ receiver: inout Receiver,
        into output: inout Batch
    ) {
        guard transports[transport].bandwidth != nil else { return }
        transports[transport].bandwidth?.expire(at: now)
        startProbe(of: transport, at: now, &transports)
        transports.noteEstimate(of: transport, at: now)
        while output.free > Batch.replyCapacity / 2,
            let item = transports[transport].bandwidth?.takeNext(at: now)
        {
            release(Int(item.index), at: now, &transports, receiver, into: &output)
        }
        pad(transport, at: now, &transports, &receiver, into: &output)
    }

    /// Queues a numbered packet in its subscriber's pacer; returns `false` if it must be sent now.
    mutating func hold(
        _ place: PacketPlace,
        through slotCursor: borrowing SlotCursor,
        as rewriting: Rewriting,
        index: Int64,
        at now: Instant,
        _ transports: inout Transports,
        _ receiver: borrowing Receiver
    ) -> Bool {
        let transport = slotCursor.slot.transport
        // Packets that may be sent twice under one index are not paced.
        guard slotCursor.slot.kind.isVideo, slotCursor.slot.stampsPackets,
            transports[transport].bandwidth?.hasRoom(at: now) == false
        else { return false }
        let encoding = receiver.pool[place].encoding
        let number = receiver.pool[place].number
        guard receiver.encodings[encoding].history.place(of: Int(number)) == place else {
            return false
        }
        let paced = PacedPacket(
            slot: slots.handle(at: slotCursor.index),
            place: place,
            number: number,
            index: index,
            rewriting: rewriting
        )
        guard let at = storePaced(for: paced) else { return false }
        let bytes = Int(receiver.pool[place].payloadLength) + Self.usualOverhead
        let queued = transports[transport].bandwidth?.enqueue(UInt32(at), bytes: bytes, at: now)
        if queued == .first { transports.schedule(transport, at: now) }
        guard queued == nil || queued == .full else { return true }
        freePaced(at)
        return false
    }

    /// Maximum number of paced packets of a worker, over all subscribers.
    static let maximumPaced = 65_536
    /// Headers, extensions and authentication tag, in bytes; an estimate is enough for the pacer.
    static let usualOverhead = 80

    /// Sends a paced packet, if it may still be sent.
    private mutating func release(
        _ at: Int,
        at now: Instant,
        _ transports: inout Transports,
        _ receiver: borrowing Receiver,
        into output: inout Batch
    ) {
        let paced = pacedPackets[at]
        freePaced(at)
        guard !paced.isVoid, slots.contains(paced.slot), isInHistory(paced, receiver) else {
            return
        }
        var slotCursor = slotCursor(of: paced.slot.place, transports)
        guard slotCursor.destination.path != nil else { return }
        var rewriting = paced.rewriting
        if slotCursor.slot.stampsPackets {
            rewriting.stamp(from: &slotCursor, sendTime: Self.sendTime(at: now))
        }
        isReleasing = true
        let isSent = send(
            paced.place,
            through: &slotCursor,
            as: rewriting,
            index: paced.index,
            at: now,
            &transports,
            receiver,
            into: &output
        )
        isReleasing = false
        if isSent { counters.rtpOut &+= 1 }
        put(slotCursor, &transports)
    }

    private func isInHistory(_ paced: PacedPacket, _ receiver: borrowing Receiver) -> Bool {
        guard let encoding = paced.rewriting.span.encoding.value else { return false }
        return receiver.encodings.isOccupied(encoding)
            && receiver.encodings[encoding].epoch == paced.rewriting.span.epoch
            && receiver.encodings[encoding].history.place(of: Int(paced.number)) == paced.place
    }

    /// Drops the paced packets of a slot whose permission was revoked.
    ///
    /// Their indexes are given back, so that the next packet leaves no gap, unless a later index is
    /// in use: an index is used once (RFC 3711 §9.1).
    mutating func dropPaced(of slot: SlotIndex, _ transports: borrowing Transports) {
        guard transports[slots[slot].transport].bandwidth?.holdsPackets() == true else { return }
        let id = slots.handle(at: slot)
        var first = Int64.max
        var count: Int64 = 0
        for at in 0..<pacedPackets.count
        where pacedPackets[at].slot == id && !pacedPackets[at].isVoid {
            pacedPackets[at].isVoid = true
            first = min(first, pacedPackets[at].index)
            count += 1
        }
        let highest = slots[slot].rewriter.highest
        guard count > 0, highest - first + 1 == count else { return }
        slots[slot].rewriter.retract(before: first, after: &slotRecords[slot].earlier)
    }

    /// Empties the pacer of a transport that ends.
    mutating func clearPacer(of transport: TransportIndex, _ transports: inout Transports) {
        while let item = transports[transport].bandwidth?.takeAny() {
            freePaced(Int(item.index))
        }
    }

    /// Stores a paced packet; returns `nil` at the worker's limit.
    private mutating func storePaced(for paced: PacedPacket) -> Int? {
        guard let at = firstFreePaced else {
            guard pacedPackets.count < Self.maximumPaced else { return nil }
            pacedPackets.append(paced)
            return pacedPackets.count - 1
        }
        firstFreePaced = pacedPackets[at].nextFree
        pacedPackets[at] = paced
        return at
    }

    private mutating func freePaced(_ at: Int) {
        pacedPackets[at].isVoid = true
        pacedPackets[at].nextFree = firstFreePaced
        firstFreePaced = at
    }
}
