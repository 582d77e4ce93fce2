import RTP
import WorkerInterface

/// Notes for the detectors of freezes, from what viewers report, and the account of freezes.
extension Forwarder {
    /// Notes the frames that a viewer's last feedback message reports as arrived.
    mutating func noteArrivedFrames(of transport: TransportIndex, _ transports: inout Transports) {
        if transports[transport].bandwidth?.estimator.hasNewClock == true {
            forgetArrivals(of: transport, transports)
        }
        let arrived = transports[transport].bandwidth?.estimator.arrivedFrames.count ?? 0
        for index in 0..<arrived {
            guard let frame = transports[transport].bandwidth?.estimator.arrivedFrames[index],
                slots.isOccupied(frame.slot), slots[frame.slot].transport == transport,
                slotRecords[frame.slot].freezes.isMade
            else { continue }
            let ended = slotRecords[frame.slot].freezes.value
                .noteArrival(sent: frame.sent, arrived: frame.arrived)
            count(ended, of: transport, &transports)
        }
    }

    private mutating func forgetArrivals(
        of transport: TransportIndex,
        _ transports: borrowing Transports
    ) {
        for index in 0..<transports[transport].slots.count {
            let slot = transports[transport].slots[index]
            guard slotRecords[slot].freezes.isMade else { continue }
            slotRecords[slot].freezes.value.forgetArrivals()
        }
    }

    /// Notes that a viewer has asked for lost packets.
    mutating func noteNACK(of slot: SlotIndex, at now: Instant) {
        guard slotRecords[slot].freezes.isMade else { return }
        slotRecords[slot].freezes.value.noteAsked(at: now)
    }

    /// Notes that a viewer lacks a packet that sfud received at `arrival`.
    mutating func noteLoss(of arrival: Instant, through slot: SlotIndex, at now: Instant) {
        guard slotRecords[slot].freezes.isMade else { return }
        slotRecords[slot].freezes.value.noteLost(arrival, at: now)
    }

    /// Notes that a viewer has asked for a keyframe.
    mutating func notePictureRequest(
        of slot: SlotIndex,
        at now: Instant,
        _ receiver: borrowing Receiver
    ) {
        guard slotRecords[slot].freezes.isMade else { return }
        let keyframeAt = followedEncoding(of: slot, receiver)
            .flatMap { receiver.encodings[$0].keyframes.lastKeyframeAt }
        slotRecords[slot].freezes.value.noteRequest(at: now, keyframeAt: keyframeAt)
    }

    /// Returns the encoding whose packets a video slot forwards, or waits for.
    func followedEncoding(of slot: SlotIndex, _ receiver: borrowing Receiver) -> EncodingIndex? {
        let encoding: EncodingIndex? =
            switch slots[slot].source {
            case .idle: nil
            case .waiting: slotRecords[slot].target?.encoding
            case .flowing(let encoding), .switching(from: let encoding, to: _): encoding
            }
        guard let encoding, receiver.encodings.isOccupied(encoding) else { return nil }
        return encoding
    }

    /// Adds a freeze to the accounts of its transport and of the worker.
    mutating func count(
        _ freeze: Freeze?,
        of transport: TransportIndex,
        _ transports: inout Transports
    ) {
        guard let freeze else { return }
        transports[transport].quality.freezes.add(freeze)
        counters.freezes.add(freeze)
    }

    /// Ends the freeze that is going on in a slot whose viewer is to have no more video from there.
    mutating func endFreeze(of slot: SlotIndex, at now: Instant, _ transports: inout Transports) {
        guard slotRecords[slot].freezes.isMade else { return }
        let ended = slotRecords[slot].freezes.value.finish(at: now)
        count(ended, of: slots[slot].transport, &transports)
    }
}
