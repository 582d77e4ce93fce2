import RTP
import WorkerInterface

/// First picture of a new viewer: the warm one of the lowest encoding, instead of a request to the
/// publisher.
///
/// Its frames leave in one paced burst, with timestamps that end at the present, and live packets
/// continue them. The slot then climbs to its target as to any higher layer.
extension Forwarder {
    /// Most bytes to all slots of a viewer within `burstMilliseconds`, and for a path whose
    /// bandwidth is known the share of a second that they may take on it.
    private static let burstBytes = 98_304
    /// Most packets of warm pictures that a worker prepares at once; they go before live ones.
    private static let mostPackets = 2_048
    private static let burstMilliseconds: Int64 = 500
    private static let burstShare = 0.25

    /// Prepares a slot that waits for its first picture to be sent the warm one.
    ///
    /// Returns `false` if there is none, or if the viewer's path does not take it: a keyframe is
    /// needed then.
    mutating func showWarmPicture(
        in slot: SlotIndex,
        of publication: PublicationIndex,
        upTo target: LayerTarget,
        at now: Instant,
        _ transports: inout Transports,
        _ receiver: inout Receiver
    ) -> Bool {
        // The packets of a batch that is partly sent would come too late.
        guard slotRecords[slot].isFresh, !isFlushing,
            let encoding = receiver.lowestLive(of: publication),
            let warm = receiver.encodings[encoding].history.warm, warm.isUsable(at: now),
            replays.count + warm.packets <= Self.mostPackets,
            let end = receiver.firstUnsent(of: encoding, endingAt: warm.end),
            warm.start < end, beginsAtBase(warm, of: encoding, receiver),
            plays(encoding, in: slot, receiver),
            takes(warm, slots[slot].transport, at: now, &transports)
        else { return false }
        // Replays that were prepared for the slot before are void.
        slotRecords[slot].bindings &+= 1
        slotRecords[slot].isFresh = false
        slotRecords[slot].warmAt = now
        prepare(warm, before: end, of: encoding, publication, for: slot, receiver)
        slots[slot].isLayerNoted = false
        slots[slot].source = .flowing(encoding)
        if target.encoding != encoding {
            slots[slot].source = .switching(from: encoding, to: target.encoding)
        }
        slotRecords[slot].isClimbing = target.encoding != encoding || target.spatial > 0
        if slotRecords[slot].isClimbing {
            receiver.requestKeyframe(toClimbTo: target.encoding, at: now, &transports)
        }
        return true
    }

    /// Whether the keyframe is in the layers that a warm picture has.
    private func beginsAtBase(
        _ warm: WarmPicture,
        of encoding: EncodingIndex,
        _ receiver: borrowing Receiver
    ) -> Bool {
        guard let first = receiver.encodings[encoding].history.place(of: warm.start) else {
            return false
        }
        return warm.keeps(receiver.pool[first], number: warm.start)
    }

    /// Whether packets of a slot's warm picture may still be asked for again.
    func wasShownWarmPicture(_ slot: SlotIndex, at now: Instant) -> Bool {
        let at = slotRecords[slot].warmAt
        return now.milliseconds(since: at) < WarmPicture.farewellMilliseconds
    }

    /// Whether the viewer has the encoding's codec.
    private func plays(
        _ encoding: EncodingIndex,
        in slot: SlotIndex,
        _ receiver: borrowing Receiver
    ) -> Bool {
        guard let format = receiver.encodings[encoding].mapping?.format else { return true }
        return slotRecords[slot].configuration.mapping(for: format) != nil
    }

    /// Whether a viewer's path takes a warm picture now; if so, counts it.
    private func takes(
        _ warm: WarmPicture,
        _ transport: TransportIndex,
        at now: Instant,
        _ transports: inout Transports
    ) -> Bool {
        guard transports[transport].bandwidth?.isFull() != true else { return false }
        var most = Self.burstBytes
        if let estimate = transports[transport].bandwidth?.usableEstimate(at: now) {
            most = min(most, Int(saturating: Double(estimate) / 8 * Self.burstShare))
        }
        let last = transports[transport].pictureBurst
        let isOver = now.milliseconds(since: last.at) >= Self.burstMilliseconds
        let sum = (isOver ? 0 : last.bytes) + warm.bytes + warm.packets * Self.usualOverhead
        guard sum <= most else { return false }
        transports[transport].pictureBurst = (at: isOver ? now : last.at, bytes: sum)
        return true
    }

    private mutating func prepare(
        _ warm: WarmPicture,
        before end: Int,
        of encoding: EncodingIndex,
        _ publication: PublicationIndex,
        for slot: SlotIndex,
        _ receiver: borrowing Receiver
    ) {
        let start = replays.count
        let id = slots.handle(at: slot)
        var frames = 0
        var previous: PacketPlace?
        for number in warm.start..<end {
            guard let place = receiver.encodings[encoding].history.place(of: number),
                warm.keeps(receiver.pool[place], number: number)
            else { continue }
            let timestamp = receiver.pool[place].timestamp
            if previous.map({ receiver.pool[$0].timestamp != timestamp }) ?? true { frames += 1 }
            previous = place
            // Until the number of frames is known, the timestamp counts them.
            replays.append(
                Replay(
                    slot: id,
                    binding: slotRecords[slot].bindings,
                    publication: publication,
                    place: place,
                    picture: Replay.Picture(timestamp: UInt32(clamping: frames - 1))
                )
            )
        }
        guard let previous else { return }
        let (first, step) = slots[slot].rewriter.timestamps(
            ofFrames: frames,
            upTo: receiver.pool[previous],
            clockRate: 90_000
        )
        for index in start..<replays.count {
            let frame = replays[index].picture?.timestamp ?? 0
            replays[index].picture?.timestamp = first &+ frame &* step
        }
        replays[start].picture?.isFirst = true
        replays[replays.count - 1].picture?.next = Int64(end)
    }

    /// Sends or paces one packet of a warm picture.
    mutating func send(
        _ picture: Replay.Picture,
        _ place: PacketPlace,
        of publication: PublicationIndex,
        to slot: SlotIndex,
        sendTime: UInt32,
        at now: Instant,
        _ transports: inout Transports,
        _ receiver: borrowing Receiver,
        into output: inout Batch
    ) {
        let encoding = receiver.pool[place].encoding
        var slotCursor = slotCursor(of: slot, transports)
        guard slotCursor.slot.isOpen, slotCursor.slot.sends(encoding),
            slotCursor.destination.path != nil
        else { return }
        let incoming = receiver.pool[place].payloadType
        if slotCursor.slot.incomingPayloadType != incoming {
            remap(&slotCursor, payloadType: incoming, of: publication, receiver)
        }
        guard let payloadType = slotCursor.slot.payloadType else { return }
        slotCursor.slot.rewriter.replay(
            receiver.pool[place],
            isFirst: picture.isFirst,
            timestamp: picture.timestamp,
            point: WarmPicture.point,
            after: &slotRecords[slot].earlier
        )
        _ = forward(
            place,
            through: &slotCursor,
            as: slotCursor.slot.rewriter.current,
            index: slotCursor.slot.rewriter.highest &+ 1,
            payloadType: payloadType,
            sendTime: sendTime,
            at: now,
            &transports,
            receiver,
            into: &output
        )
        if let next = picture.next {
            slotCursor.slot.rewriter.resume(
                at: next,
                omitting: newestOmitted(after: place, before: Int(next), receiver),
                after: &slotRecords[slot].earlier
            )
        }
        put(slotCursor, &transports)
    }

    /// Returns the picture of the newest packet that was left out between `place` and `end`.
    private func newestOmitted(
        after place: PacketPlace,
        before end: Int,
        _ receiver: borrowing Receiver
    ) -> (picture: UInt16, isCounted: Bool)? {
        let encoding = receiver.pool[place].encoding
        var number = end - 1
        while number > Int(receiver.pool[place].number) {
            if let omitted = receiver.encodings[encoding].history.place(of: number) {
                let info = receiver.pool[omitted]
                return (info.pictureID, info.flags.contains(.countsPictures))
            }
            number -= 1
        }
        return nil
    }
}

extension Slot {
    /// Whether packets of an encoding are forwarded through it.
    func sends(_ encoding: EncodingIndex) -> Bool {
        switch source {
        case .flowing(encoding), .switching(from: encoding, to: _): true
        case .idle, .waiting, .flowing, .switching: false
        }
    }
}

extension Receiver {
    /// Returns the number of an encoding's first packet that waits in the batch, or `end` if none
    /// does; `nil` if they are not the newest ones.
    func firstUnsent(of encoding: EncodingIndex, endingAt end: Int) -> Int? {
        var first = end
        var count = 0
        var pending = publications[encodings[encoding].publication].firstArrival
        while let place = pending {
            if pool[place].encoding == encoding {
                first = min(first, Int(pool[place].number))
                count &+= 1
            }
            pending = pool[place].next.value
        }
        return count == end &- first ? first : nil
    }
}
