import RTP
import WorkerInterface

/// The received batch: packets that wait to be forwarded, chained by publication.
extension Receiver {
    /// Packets in one batch; the caller flushes before receiving more.
    static let batchCapacity = 128

    /// Adds the packet to the current batch and to its encoding's history.
    mutating func keep(
        _ info: PacketInfo,
        place: PacketPlace,
        encoding: EncodingIndex,
        publication: PublicationIndex
    ) {
        pool[place] = info
        var isKept = false
        if info.flags.contains(.skipped) {
            encodings[encoding].history.notePadding(info)
        } else {
            let beginsPicture =
                info.flags.contains(.keyframeStart) && mayBeWarm(encoding, of: publication)
            isKept = encodings[encoding].history.insert(
                place,
                number: Int(info.number),
                at: info.arrival,
                beginsPicture: beginsPicture,
                pool: &pool
            )
        }
        if !isKept { pool.retire(place) }
        publications[publication].append(place, pool: &pool)
        arrivalCount &+= 1
        if !publications[publication].isQueued {
            publications[publication].isQueued = true
            queued.append(publication)
        }
    }

    /// Drops a packet that a step has refused.
    mutating func discard(_ packet: ReceivedPacket, because reason: DropReason) {
        drops.count(reason)
        pool.release(packet.place)
    }

    /// Returns the lowest number among the received packets that are not sent yet.
    ///
    /// Those go the usual way.
    func firstPending(of publication: PublicationIndex) -> Int {
        var first = Int.max
        var pending = publications[publication].firstArrival
        while let place = pending {
            first = min(first, Int(pool[place].number))
            pending = pool[place].next.value
        }
        return first
    }

    /// Counts each packet of the batch as forwarded, or as dropped with its reason.
    mutating func countOutcomes(_ publication: PublicationIndex) {
        var next = publications[publication].firstArrival
        while let place = next {
            count(place, of: publication)
            next = pool[place].next.value
        }
        publications[publication].removeArrivals()
    }

    private mutating func count(_ place: PacketPlace, of publication: PublicationIndex) {
        let isMirror = publications[publication].home != nil
        if let drop = pool[place].drop {
            let reason = publications[publication].isOpen ? drop : .gated
            if isMirror { relayDrops.count(reason) } else { drops.count(reason) }
        } else if isMirror {
            counters.relayedForwarded &+= 1
        } else {
            counters.rtpForwarded &+= 1
        }
    }

    /// Drops the packets in the batch of a publication that ends.
    mutating func discardArrivals(of publication: PublicationIndex) {
        guard publications[publication].isQueued else { return }
        countOutcomes(publication)
        queued.remove(publication)
    }
}
