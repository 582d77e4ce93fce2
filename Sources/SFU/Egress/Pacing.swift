import RTP
import WorkerInterface

/// Packet in a subscriber's pacer: numbered, but not written.
///
/// Its bytes stay in the history of its encoding. If they are gone when its turn comes, the packet
/// is too old, or the permission to send it was revoked.
struct WaitingPacket: BitwiseCopyable {
    var slot: SlotID
    var place: Int32
    /// Packet number, which identifies it in the history.
    var number: Int64
    /// Packet index under which it will be sent.
    var index: Int64
    var rewriting: Rewriting
    /// Whether it must not be sent any more: its permission was revoked, or its place is free.
    var isVoid = false
    /// Next free place, if this one is free.
    var nextFree: Int32 = -1
}

/// Pacing: large frames leave over a few milliseconds, as fast as the path takes them.
extension Core {
    /// Sends a transport's paced packets that are due, and updates its estimate and its probe.
    mutating func expireBandwidth(of transport: Int, at now: Instant, into output: inout Batch) {
        guard transports[transport].bandwidth != nil else { return }
        transports[transport].bandwidth?.expire(at: now)
        noteEstimate(of: transport, at: now)
        startProbe(of: transport, at: now)
        while output.free > Self.replyCapacity / 2,
            let item = transports[transport].bandwidth?.takeNext(at: now)
        {
            release(Int(item.index), at: now, into: &output)
        }
        pad(transport, at: now, into: &output)
    }

    /// Queues a numbered packet in its subscriber's pacer; returns `false` if it must be sent now.
    mutating func hold(
        _ place: Int32,
        through outlet: borrowing Outlet,
        as rewriting: Rewriting,
        index: Int64
    ) -> Bool {
        let transport = outlet.slot.transport
        // Packets that may be sent twice under one index are not paced.
        guard outlet.slot.kind == .video, outlet.slot.stampsPackets,
            transports[transport].bandwidth?.hasRoom(at: now) == false
        else { return false }
        let encoding = Int(pool[place].encoding)
        let number = pool[place].number
        guard encodings[encoding].history.place(of: Int(number)) == place else { return false }
        let waits = WaitingPacket(
            slot: slots.handle(at: outlet.index),
            place: place,
            number: number,
            index: index,
            rewriting: rewriting
        )
        guard let at = takeWaitingPlace(for: waits) else { return false }
        let bytes = Int(pool[place].payloadLength) + Self.usualOverhead
        let queued = transports[transport].bandwidth?.enqueue(UInt32(at), bytes: bytes, at: now)
        if queued == .first { schedule(transport) }
        guard queued == nil || queued == .full else { return true }
        freeWaitingPlace(at)
        return false
    }

    /// Maximum number of paced packets of a worker, over all subscribers.
    static let maximumWaiting = 65_536
    /// Headers, extensions and authentication tag, in bytes; an estimate is enough for the pacer.
    static let usualOverhead = 80

    /// Sends a paced packet, if it may still be sent.
    private mutating func release(_ at: Int, at now: Instant, into output: inout Batch) {
        let waits = waiting[at]
        freeWaitingPlace(at)
        guard !waits.isVoid, slots.contains(waits.slot), isStillThere(waits) else { return }
        var outlet = outlet(of: Int(waits.slot.index))
        guard outlet.destination.path != nil else { return }
        var rewriting = waits.rewriting
        if outlet.slot.stampsPackets {
            rewriting.stamp(from: &outlet, sendTime: Self.sendTime(at: now))
        }
        isReleasing = true
        let isSent = send(
            waits.place,
            through: &outlet,
            as: rewriting,
            index: waits.index,
            into: &output
        )
        isReleasing = false
        if isSent { statistics.rtpOut &+= 1 }
        put(outlet)
    }

    private func isStillThere(_ waits: WaitingPacket) -> Bool {
        let encoding = Int(waits.rewriting.span.encoding)
        return encodings.isOccupied(encoding)
            && encodings[encoding].epoch == waits.rewriting.span.epoch
            && encodings[encoding].history.place(of: Int(waits.number)) == waits.place
    }

    /// Drops the paced packets of a slot whose permission was revoked.
    ///
    /// Their indexes are given back, so that the next packet leaves no gap, unless a later index is
    /// in use: an index is used once (RFC 3711 §9.1).
    mutating func dropWaiting(of slot: Int) {
        guard transports[slots[slot].transport].bandwidth?.pacer.isEmpty == false else { return }
        let id = slots.handle(at: slot)
        var first = Int64.max
        var count: Int64 = 0
        for at in 0..<waiting.count where waiting[at].slot == id && !waiting[at].isVoid {
            waiting[at].isVoid = true
            first = min(first, waiting[at].index)
            count += 1
        }
        let highest = slots[slot].renumbering.highest
        guard count > 0, highest - first + 1 == count else { return }
        slots[slot].renumbering.retract(before: first, after: &slotRecords[slot].earlier)
    }

    /// Empties the pacer of a transport that ends.
    mutating func forgetWaiting(of transport: Int) {
        while let item = transports[transport].bandwidth?.takeAny() {
            freeWaitingPlace(Int(item.index))
        }
    }

    /// Stores a paced packet; returns `nil` at the worker's limit.
    private mutating func takeWaitingPlace(for waits: WaitingPacket) -> Int? {
        guard firstFreeWaiting >= 0 else {
            guard waiting.count < Self.maximumWaiting else { return nil }
            waiting.append(waits)
            return waiting.count - 1
        }
        let at = Int(firstFreeWaiting)
        firstFreeWaiting = waiting[at].nextFree
        waiting[at] = waits
        return at
    }

    private mutating func freeWaitingPlace(_ at: Int) {
        waiting[at].isVoid = true
        waiting[at].nextFree = firstFreeWaiting
        firstFreeWaiting = Int32(at)
    }
}
