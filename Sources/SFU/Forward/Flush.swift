import RTP
import WorkerInterface

/// Progress of `flush` in the batch under way.
struct FlushCursor: BitwiseCopyable {
    /// Whether GSO padding is written and slots are chained.
    var isUnderWay = false
    /// Next subscriber of the only publication, or current transport if there are several
    /// publications.
    var position = 0
    /// Next slot of that transport, if there is one.
    var slot: SlotIndex?
}

/// Egress order: the sequence in which a batch goes to its subscribers.
extension Forwarder {
    /// Sends the received batch to its subscribers, small audiences first.
    ///
    /// Small audiences would otherwise wait long for large ones. Within each of the two groups
    /// datagrams are ordered by transport, so that those to one address are adjacent: audio first,
    /// then video, publications in the order of their arrival.
    ///
    /// Returns `true` if the output is full and more is left: send it and call again.
    mutating func flush(
        into output: inout Batch,
        at now: Instant,
        _ transports: inout Transports,
        _ receiver: inout Receiver
    ) -> Bool {
        precondition(output.capacity >= Receiver.batchCapacity, "a batch must fit the output")
        defer { transports.srtpContext.finish() }
        let sendTime = Self.sendTime(at: now)
        if !replays.isEmpty,
            sendReplays(sendTime: sendTime, at: now, &transports, &receiver, into: &output)
        {
            return true
        }
        repeat {
            if !cursor.isUnderWay { prepareFlush(&receiver) }
            let isFull =
                receiver.queued.count == 1
                ? walkViewers(
                    of: receiver.queued[0],
                    sendTime: sendTime,
                    at: now,
                    &transports,
                    &receiver,
                    into: &output
                )
                : walkDestinations(
                    sendTime: sendTime,
                    at: now,
                    &transports,
                    &receiver,
                    into: &output
                )
            if isFull { return true }
            finishWalk(&receiver)
        } while !receiver.queued.isEmpty
        receiver.arrivalCount = 0
        // A preempted batch may still read the places that it retired.
        if !aside.isActive { receiver.pool.reclaim() }
        return false
    }

    /// Returns the sender's clock as 24-bit 6.18 fixed-point seconds (the abs-send-time extension).
    static func sendTime(at now: Instant) -> UInt32 {
        let microseconds = UInt64(bitPattern: now.nanoseconds / 1_000)
        return UInt32(truncatingIfNeeded: (microseconds << 18) / 1_000_000) & 0xff_ffff
    }

    private mutating func prepareFlush(_ receiver: inout Receiver) {
        cursor.isUnderWay = true
        putLargeAudiencesLast(&receiver)
        for position in 0..<receiver.queued.count {
            padForGSO(of: receiver.queued[position], &receiver)
        }
        guard receiver.queued.count > 1 else { return }
        chainViewers(ofPublicationsOf: .audio, receiver)
        chainViewers(ofPublicationsOf: .video, receiver)
        cursor.slot = egressOrder.first(at: 0)
    }

    private mutating func putLargeAudiencesLast(_ receiver: inout Receiver) {
        var few = 0
        for position in 0..<receiver.queued.count {
            let publication = receiver.queued[position]
            if receiver.publications[publication].hasLargeAudience {
                largeAudiences.append(publication)
            } else {
                receiver.queued[few] = publication
                few += 1
            }
        }
        receiver.queued.removeAll(from: few)
        if receiver.queued.isEmpty { swap(&receiver.queued, &largeAudiences) }
    }

    private mutating func chainViewers(
        ofPublicationsOf kind: MediaKind,
        _ receiver: borrowing Receiver
    ) {
        for position in 0..<receiver.queued.count {
            let publication = receiver.queued[position]
            guard receiver.publications[publication].isOpen,
                receiver.publications[publication].kind.isVideo == kind.isVideo
            else {
                continue
            }
            for viewer in 0..<receiver.publications[publication].subscribers.count {
                egressOrder.append(receiver.publications[publication].subscribers[viewer])
            }
        }
    }

    private mutating func walkViewers(
        of publication: PublicationIndex,
        sendTime: UInt32,
        at now: Instant,
        _ transports: inout Transports,
        _ receiver: inout Receiver,
        into output: inout Batch
    ) -> Bool {
        let arrivals = receiver.publications[publication].arrivalCount
        let count = receiver.publications[publication].subscribers.count
        while cursor.position < count {
            guard output.free >= arrivals else { return true }
            let position = cursor.position
            let slot = receiver.publications[publication].subscribers[position]
            if position + Self.recordsAhead < count {
                prefetch(
                    receiver.publications[publication].subscribers[position + Self.recordsAhead],
                    transports
                )
            }
            if position + Self.keysAhead < count {
                let next = receiver.publications[publication].subscribers[position + Self.keysAhead]
                prefetchKey(of: egressOrder.transport(of: next), transports)
            }
            forward(
                publication,
                to: slot,
                sendTime: sendTime,
                at: now,
                &transports,
                &receiver,
                into: &output
            )
            cursor.position += 1
        }
        return false
    }

    private mutating func walkDestinations(
        sendTime: UInt32,
        at now: Instant,
        _ transports: inout Transports,
        _ receiver: inout Receiver,
        into output: inout Batch
    ) -> Bool {
        while cursor.position < egressOrder.count {
            while let slot = cursor.slot {
                let next = egressOrder.next(after: slot)
                // Commands, which unbind slots, are carried out between two batches.
                guard let publication = slots[slot].publication else {
                    preconditionFailure("a slot of the batch is bound")
                }
                guard output.free >= receiver.publications[publication].arrivalCount else {
                    return true
                }
                if let next { slots.prefetch(next) }
                forward(
                    publication,
                    to: slot,
                    sendTime: sendTime,
                    at: now,
                    &transports,
                    &receiver,
                    into: &output
                )
                cursor.slot = next
            }
            cursor.position += 1
            cursor.slot = egressOrder.first(at: cursor.position)
            if let slot = egressOrder.first(at: cursor.position + Self.recordsAhead) {
                prefetch(slot, transports)
            }
            if let slot = egressOrder.first(at: cursor.position + Self.keysAhead) {
                prefetchKey(of: egressOrder.transport(of: slot), transports)
            }
        }
        return false
    }

    /// Prefetch distance of slots and destinations, in subscribers.
    private static let recordsAhead = 8
    /// Prefetch distance of keys, whose addresses lie in the transports.destinations.
    private static let keysAhead = 4

    private func prefetch(_ slot: SlotIndex, _ transports: borrowing Transports) {
        slots.prefetch(slot)
        transports.destinations.prefetch(egressOrder.transport(of: slot))
    }

    private func prefetchKey(of transport: TransportIndex, _ transports: borrowing Transports) {
        transports.destinations[transport].key?.prefetch()
    }

    private mutating func finishWalk(_ receiver: inout Receiver) {
        for position in 0..<receiver.queued.count {
            receiver.countOutcomes(receiver.queued[position])
        }
        egressOrder.removeAll()
        receiver.queued.removeAll()
        cursor = FlushCursor()
        swap(&receiver.queued, &largeAudiences)
    }
}
