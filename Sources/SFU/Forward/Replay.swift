import RTP
import WorkerInterface

/// Held audio packet to send through a slot before live packets.
struct Replay: BitwiseCopyable {
    var slot: SlotID
    /// Binding of the slot that it is for; a later binding has replays of its own.
    var binding: UInt32
    var publication: Int32
    var place: Int32
}

/// Replay of the first words of a newly selected active speaker.
///
/// They were spoken before they were recognized as speech, so each new listener gets them from the
/// history in one burst.
extension Core {
    /// Maximum number of packets held for the next batch; further listeners start live.
    private static let replayLimit = 65_536

    /// Holds the packets since `start` for replay to a slot.
    ///
    /// Received packets that are not sent yet go the usual way, and packets that a returning
    /// listener has had are left out: none is sent twice.
    mutating func prepareReplay(to slot: Int, since start: Instant) {
        let publication = Int(slots[slot].publication)
        guard slots[slot].kind.isAudio, publication >= 0, publications[publication].isOpen,
            transports[slots[slot].transport].canSend
        else { return }
        let end = firstPending(of: publication)
        let id = slots.handle(at: slot)
        for position in 0..<publications[publication].encodings.count {
            let encoding = Int(publications[publication].encodings[position])
            for number in encodings[encoding].history.numbers where number < end {
                let place = encodings[encoding].history.place(of: number)
                guard place >= 0, pool[place].arrival >= start, replays.count < Self.replayLimit,
                    !slots[slot].rewriter.hasSent(pool[place], after: slotRecords[slot].earlier)
                else { continue }
                replays.append(
                    Replay(
                        slot: id,
                        binding: slotRecords[slot].bindings,
                        publication: Int32(publication),
                        place: place
                    )
                )
            }
        }
    }

    /// Sends the held packets; returns `true` if the output is full and more are left.
    ///
    /// No place of the pool is released before, so each still holds its packet.
    mutating func sendReplays(sendTime: UInt32, into output: inout Batch) -> Bool {
        while nextReplay < replays.count {
            guard output.free > 0 else { return true }
            let replay = replays[nextReplay]
            nextReplay += 1
            let slot = Int(replay.slot.index)
            let publication = Int(replay.publication)
            guard publication >= 0, slots.contains(replay.slot),
                slotRecords[slot].bindings == replay.binding,
                slots[slot].publication == replay.publication, publications[publication].isOpen
            else { continue }
            var slotCursor = slotCursor(of: slot)
            guard slotCursor.slot.isOpen, slotCursor.destination.path != nil else { continue }
            _ = forward(
                replay.place,
                of: publication,
                through: &slotCursor,
                sendTime: sendTime,
                into: &output
            )
            put(slotCursor)
        }
        replays.removeAll()
        nextReplay = 0
        return false
    }

    /// Cancels the replays of a publication whose permission was revoked.
    mutating func cancelReplays(of publication: Int) {
        for index in 0..<replays.count where replays[index].publication == Int32(publication) {
            replays[index].publication = -1
        }
    }
}
