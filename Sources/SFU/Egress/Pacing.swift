import RTP
import WorkerInterface

/// A packet that its viewer's path has no room for yet: numbered, but not written.
///
/// Its bytes stay where they are, in the history of its encoding; what is no longer there when
/// its turn comes is of a right that was lost, or too old.
struct WaitingPacket: BitwiseCopyable {
    var slot: SlotID
    var place: Int32
    /// The packet's own number, by which its history knows it.
    var number: Int64
    /// The packet index that it will have.
    var index: Int64
    var rewriting: Rewriting
    /// Its right was lost meanwhile.
    var isVoid = false
    /// The next place that is free, where this one is.
    var nextFree: Int32 = -1
}

/// Step 9a: large frames leave over a few milliseconds, as fast as the path takes them.
extension Core {
    /// Lets a viewer's path do what is due: what waits leaves, and the estimate is looked at.
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

    /// Lets a numbered packet wait for its viewer's path; `false` where it must leave now.
    mutating func hold(
        _ place: Int32,
        through outlet: borrowing Outlet,
        as rewriting: Rewriting,
        index: Int64
    ) -> Bool {
        let transport = outlet.slot.transport
        // What may be sent twice under one index goes its own way.
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

    /// Packets that wait for all of a worker's viewers together.
    static let maximumWaiting = 65_536
    /// Headers, extensions and the tag, in bytes: the pacer need not know it exactly.
    static let usualOverhead = 80

    /// Sends what has waited, if it may still leave.
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

    /// Drops what waits for a slot whose right is lost.
    ///
    /// What never leaves gives its numbers back, so that what comes next leaves no gap; but none
    /// that lies before one that has left: an index is used once (RFC 3711 §9.1).
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

    /// A viewer's transport ends: nobody will ask for what waits in it.
    mutating func forgetWaiting(of transport: Int) {
        while let item = transports[transport].bandwidth?.takeAny() {
            freeWaitingPlace(Int(item.index))
        }
    }

    /// `nil` where as many wait as a worker lets wait.
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
