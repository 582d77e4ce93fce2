package import RTP
import WorkerInterface

/// Progress of `flush` in the batch under way.
struct FlushCursor: BitwiseCopyable {
    /// Whether GSO padding is written and slots are chained.
    var isUnderWay = false
    /// Next subscriber of the only publication, or current transport if there are several
    /// publications.
    var position = 0
    /// Next slot of that transport, or -1.
    var slot: Int32 = -1
}

/// Egress order: the sequence in which a batch goes to its subscribers.
extension Core {
    /// Sends the received batch to its subscribers, small audiences first.
    ///
    /// Small audiences would otherwise wait long for large ones. Within each of the two groups
    /// datagrams are ordered by transport, so that those to one address are adjacent: audio first,
    /// then video, publications in the order of their arrival.
    ///
    /// Returns `true` if the output is full and more is left: send it and call again.
    package mutating func flush(into output: inout Batch, at now: Instant) -> Bool {
        precondition(output.capacity >= Self.batchCapacity, "a batch must fit the output")
        defer { srtpContext.finish() }
        self.now = now
        let sendTime = Self.sendTime(at: now)
        if !replays.isEmpty, sendReplays(sendTime: sendTime, into: &output) { return true }
        repeat {
            if !cursor.isUnderWay { prepareFlush() }
            let isFull =
                queued.count == 1
                ? walkViewers(of: Int(queued[0]), sendTime: sendTime, into: &output)
                : walkDestinations(sendTime: sendTime, into: &output)
            if isFull { return true }
            finishWalk()
        } while !queued.isEmpty
        arrivalCount = 0
        // A preempted batch may still read the places that it retired.
        if !aside.isActive { pool.reclaim() }
        return false
    }

    /// Returns the sender's clock as 24-bit 6.18 fixed-point seconds (the abs-send-time extension).
    static func sendTime(at now: Instant) -> UInt32 {
        let microseconds = UInt64(bitPattern: now.nanoseconds / 1_000)
        return UInt32(truncatingIfNeeded: (microseconds << 18) / 1_000_000) & 0xff_ffff
    }

    private mutating func prepareFlush() {
        cursor.isUnderWay = true
        putLargeAudiencesLast()
        for position in 0..<queued.count { padForGSO(of: Int(queued[position])) }
        guard queued.count > 1 else { return }
        chainViewers(ofPublicationsOf: .audio)
        chainViewers(ofPublicationsOf: .video)
        cursor.slot = egressOrder.first(at: 0)
    }

    private mutating func putLargeAudiencesLast() {
        var few = 0
        for position in 0..<queued.count {
            let publication = queued[position]
            if publications[Int(publication)].hasLargeAudience {
                largeAudiences.append(publication)
            } else {
                queued[few] = publication
                few += 1
            }
        }
        queued.removeAll(from: few)
        if queued.isEmpty { swap(&queued, &largeAudiences) }
    }

    private mutating func chainViewers(ofPublicationsOf kind: MediaKind) {
        for position in 0..<queued.count {
            let publication = Int(queued[position])
            guard publications[publication].isOpen,
                publications[publication].kind.isVideo == kind.isVideo
            else {
                continue
            }
            for viewer in 0..<publications[publication].subscribers.count {
                egressOrder.append(publications[publication].subscribers[viewer])
            }
        }
    }

    private mutating func walkViewers(
        of publication: Int,
        sendTime: UInt32,
        into output: inout Batch
    ) -> Bool {
        let arrivals = publications[publication].arrivalCount
        let count = publications[publication].subscribers.count
        while cursor.position < count {
            guard output.free >= arrivals else { return true }
            let position = cursor.position
            let slot = Int(publications[publication].subscribers[position])
            if position + Self.recordsAhead < count {
                prefetch(publications[publication].subscribers[position + Self.recordsAhead])
            }
            if position + Self.keysAhead < count {
                let next = publications[publication].subscribers[position + Self.keysAhead]
                prefetchKey(of: egressOrder.transport(of: next))
            }
            forward(publication, to: slot, sendTime: sendTime, into: &output)
            cursor.position += 1
        }
        return false
    }

    private mutating func walkDestinations(sendTime: UInt32, into output: inout Batch) -> Bool {
        while cursor.position < egressOrder.count {
            while cursor.slot >= 0 {
                let publication = Int(slots[Int(cursor.slot)].publication)
                guard output.free >= publications[publication].arrivalCount else { return true }
                let next = egressOrder.next(after: cursor.slot)
                if next >= 0 { slots.prefetch(Int(next)) }
                forward(publication, to: Int(cursor.slot), sendTime: sendTime, into: &output)
                cursor.slot = next
            }
            cursor.position += 1
            cursor.slot = egressOrder.first(at: cursor.position)
            let ahead = egressOrder.first(at: cursor.position + Self.recordsAhead)
            if ahead >= 0 { prefetch(ahead) }
            let next = egressOrder.first(at: cursor.position + Self.keysAhead)
            if next >= 0 { prefetchKey(of: egressOrder.transport(of: next)) }
        }
        return false
    }

    /// Prefetch distance of slots and destinations, in subscribers.
    private static let recordsAhead = 8
    /// Prefetch distance of keys, whose addresses lie in the transports.destinations.
    private static let keysAhead = 4

    private func prefetch(_ slot: Int32) {
        slots.prefetch(Int(slot))
        transports.destinations.prefetch(egressOrder.transport(of: slot))
    }

    private func prefetchKey(of transport: Int) {
        transports.destinations[transport].key?.prefetch()
    }

    private mutating func finishWalk() {
        for position in 0..<queued.count { countOutcomes(Int(queued[position])) }
        egressOrder.removeAll()
        queued.removeAll()
        cursor = FlushCursor()
        swap(&queued, &largeAudiences)
    }

    /// Counts each packet of the batch as forwarded, or as dropped with its reason.
    private mutating func countOutcomes(_ publication: Int) {
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

    /// Drops the packets in the batch under way of a publication that ends.
    mutating func discardArrivals(of publication: Int) {
        guard publications[publication].isQueued else { return }
        precondition(
            !cursor.isUnderWay && largeAudiences.isEmpty && !aside.isActive,
            "a batch is let out before commands are carried out"
        )
        countOutcomes(publication)
        queued.remove(Int32(publication))
    }
}
