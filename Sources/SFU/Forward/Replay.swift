import RTP
import WorkerInterface

/// Kept packet to send through a slot before live packets: held audio, or a warm picture's.
struct Replay: BitwiseCopyable {
    /// Place of a packet in a warm picture.
    struct Picture: BitwiseCopyable {
        /// Outgoing timestamp.
        var timestamp: UInt32
        var isFirst = false
        /// Number of the next live packet, after the picture's last one.
        var next: Int64?
    }

    var slot: SlotID
    /// Binding of the slot that it is for; a later binding has replays of its own.
    var binding: UInt32
    /// Publication that it is of; `nil` once its permission was revoked.
    var publication: PublicationIndex?
    var place: PacketPlace
    var picture: Picture?
}

/// Replay of the first words of a newly selected active speaker.
///
/// They were spoken before they were recognized as speech, so each new listener gets them from the
/// history in one burst.
extension Forwarder {
    /// Maximum number of packets held for the next batch; further listeners start live.
    static let replayLimit = 65_536

    /// Holds the packets since `start` for replay to a slot.
    ///
    /// Received packets that are not sent yet go the usual way, and packets that a returning
    /// listener has had are left out: none is sent twice.
    mutating func prepareReplay(
        to slot: SlotIndex,
        since start: Instant,
        _ transports: borrowing Transports,
        _ receiver: borrowing Receiver
    ) {
        guard slots[slot].kind.isAudio, let publication = slots[slot].publication,
            receiver.publications[publication].isOpen,
            transports[slots[slot].transport].canSend
        else { return }
        let end = receiver.firstPending(of: publication)
        let id = slots.handle(at: slot)
        for position in 0..<receiver.publications[publication].encodings.count {
            let encoding = receiver.publications[publication].encodings[position]
            for number in receiver.encodings[encoding].history.numbers where number < end {
                guard let place = receiver.encodings[encoding].history.place(of: number),
                    receiver.pool[place].arrival >= start,
                    replays.count < Self.replayLimit,
                    !slots[slot].rewriter.hasSent(
                        receiver.pool[place],
                        after: slotRecords[slot].earlier
                    )
                else { continue }
                replays.append(
                    Replay(
                        slot: id,
                        binding: slotRecords[slot].bindings,
                        publication: publication,
                        place: place
                    )
                )
            }
        }
    }

    /// Sends the held packets; returns `true` if the output is full and more are left.
    ///
    /// No place of the pool is released before, so each still holds its packet.
    mutating func sendReplays(
        sendTime: UInt32,
        at now: Instant,
        _ transports: inout Transports,
        _ receiver: inout Receiver,
        into output: inout Batch
    ) -> Bool {
        while nextReplay < replays.count {
            guard output.free > 0 else { return true }
            let replay = replays[nextReplay]
            nextReplay += 1
            let slot = replay.slot.place
            guard let publication = replay.publication, slots.contains(replay.slot),
                slotRecords[slot].bindings == replay.binding,
                slots[slot].publication == publication,
                receiver.publications[publication].isOpen
            else { continue }
            if let picture = replay.picture {
                send(
                    picture,
                    replay.place,
                    of: publication,
                    to: slot,
                    sendTime: sendTime,
                    at: now,
                    &transports,
                    receiver,
                    into: &output
                )
                continue
            }
            forward(
                publication,
                replay.place,
                to: slot,
                sendTime: sendTime,
                at: now,
                &transports,
                &receiver,
                into: &output
            )
        }
        replays.removeAll()
        nextReplay = 0
        return false
    }

    /// Cancels the replays of a publication whose permission was revoked.
    mutating func cancelReplays(of publication: PublicationIndex) {
        for index in 0..<replays.count where replays[index].publication == publication {
            replays[index].publication = nil
        }
    }
}
