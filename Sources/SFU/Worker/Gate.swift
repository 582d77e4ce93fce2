import RTP
import WorkerInterface

/// Gates of publications: a hard mute closes one, and nothing of it is forwarded from then on.
extension Core {
    /// Opens or closes a publication's gate.
    ///
    /// The transport and its RTCP continue. Packets dropped at a closed gate are not reported as
    /// lost.
    mutating func gate(_ id: PublicationID, open: Bool, at now: Instant) {
        guard publications.contains(id) else { return }
        let publication = Int(id.index)
        guard publications[publication].isOpen != open else { return }
        if !open {
            note(publications[publication].speech.close(), of: publication)
            cancelReplays(of: publication)
        }
        publications[publication].isOpen = open
        publications[publication].openedAt = now
        for position in 0..<publications[publication].encodings.count {
            let encoding = Int(publications[publication].encodings[position])
            // Packets stored before the gate changed must not be retransmitted after it.
            encodings[encoding].history.removeAll(from: &pool)
            encodings[encoding].losses.removeAll()
            encodings[encoding].keyframes.restart()
        }
        for index in 0..<publications[publication].subscribers.count {
            let slot = Int(publications[publication].subscribers[index])
            if !open { revokeRight(of: slot) }
            slots[slot].source = .waiting
            if open { requestKeyframe(forSlot: slot, at: now) }
        }
        if open, !publications[publication].mirrors.isEmpty {
            // Subscribers on other workers need a keyframe too, and their requests may have arrived
            // before the gate opened.
            requestKeyframe(ofHighest: publication, at: now)
        }
    }

    /// Requests a keyframe from the publisher if the slot waits for one and can be served.
    mutating func requestKeyframe(forSlot slot: Int, at now: Instant) {
        guard slots[slot].kind == .video, slots[slot].isOpen, slots[slot].publication >= 0,
            transports[slots[slot].transport].canSend, case .waiting = slots[slot].source
        else { return }
        let encoding = slotRecords[slot].target.encoding
        guard publications[Int(slots[slot].publication)].isOpen, encoding >= 0 else { return }
        requestKeyframe(of: Int(encoding), at: now)
    }

    /// Requests a keyframe of the highest live encoding, for subscribers on other workers whose
    /// layer is unknown here.
    mutating func requestKeyframe(ofHighest publication: Int, at now: Instant) {
        guard publications[publication].isOpen, let highest = highestLive(of: publication)
        else { return }
        requestKeyframe(of: Int(highest), at: now)
    }
}
