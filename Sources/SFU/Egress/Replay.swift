import RTP
import WorkerInterface

/// One packet that was held back and is to go out through a slot, before what comes live.
struct Replay: BitwiseCopyable {
    var slot: SlotID
    /// Which binding of the slot it is for: a later one has replays of its own.
    var binding: UInt32
    var publication: Int32
    var place: Int32
}

/// The first words of who comes to be heard: they were spoken before anybody knew that it was
/// speech, so each new listener gets what the history holds of them in one burst.
extension Core {
    /// Packets of all bursts that wait for the next batch; past it a listener begins with what
    /// comes live.
    private static let replayLimit = 65_536

    /// Notes what a slot is to carry of what came since `start`.
    ///
    /// Packets that have come but were not let out yet go the usual way, and packets that a
    /// returning listener has had already are left out: nothing goes twice.
    mutating func prepareReplay(to slot: Int, since start: Instant) {
        let publication = Int(slots[slot].publication)
        guard slots[slot].kind == .audio, publication >= 0, publications[publication].isOpen,
            transports[slots[slot].transport].canSend
        else { return }
        let end = firstPending(of: publication)
        let id = slots.handle(at: slot)
        for position in 0..<publications[publication].encodings.count {
            let encoding = Int(publications[publication].encodings[position])
            for number in encodings[encoding].history.numbers where number < end {
                let place = encodings[encoding].history.place(of: number)
                guard place >= 0, pool[place].arrival >= start, replays.count < Self.replayLimit,
                    !slots[slot].renumbering.hasHad(pool[place], after: slotRecords[slot].earlier)
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

    /// Sends what was noted; `true` where the output is full and more is left.
    ///
    /// No place of the pool is given back before, so each still holds what it held.
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
            var outlet = outlet(of: slot)
            guard outlet.slot.isOpen, outlet.destination.path != nil else { continue }
            _ = forward(
                replay.place,
                of: publication,
                through: &outlet,
                sendTime: sendTime,
                into: &output
            )
            put(outlet)
        }
        replays.removeAll()
        nextReplay = 0
        return false
    }

    /// The right is gone: what was held back under it must not leave.
    mutating func cancelReplays(of publication: Int) {
        for index in 0..<replays.count where replays[index].publication == Int32(publication) {
            replays[index].publication = -1
        }
    }
}
