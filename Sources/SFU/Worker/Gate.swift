import RTP
import WorkerInterface

/// Gates of publications: a hard mute closes one, and nothing of it is forwarded from then on.
extension Core {
    /// Opens or closes a publication's gate.
    ///
    /// The transport and its RTCP continue. Packets dropped at a closed gate are not reported as
    /// lost.
    mutating func gate(_ id: PublicationID, open: Bool, at now: Instant) {
        guard receiver.publications.contains(id) else { return }
        let publication = id.place
        if receiver.publications[publication].lease?.hasLapsed == true {
            receiver.publications[publication].lease?.isWantedOpen = open
            return
        }
        set(publication, open: open, at: now)
    }

    /// Opens or closes a gate, whoever wants it.
    mutating func set(_ publication: PublicationIndex, open: Bool, at now: Instant) {
        guard receiver.publications[publication].isOpen != open else { return }
        if !open {
            receiver.note(receiver.publications[publication].speech.close(), of: publication)
            forwarder.cancelReplays(of: publication)
        }
        receiver.publications[publication].isOpen = open
        receiver.publications[publication].openedAt = now
        for position in 0..<receiver.publications[publication].encodings.count {
            let encoding = receiver.publications[publication].encodings[position]
            // Packets stored before the gate changed must not be retransmitted after it.
            receiver.encodings[encoding].history.removeAll(from: &receiver.pool)
            receiver.encodings[encoding].losses.removeAll()
            receiver.encodings[encoding].keyframes.restart()
        }
        for index in 0..<receiver.publications[publication].subscribers.count {
            let slot = receiver.publications[publication].subscribers[index]
            if !open { forwarder.revokeRight(of: slot, transports) }
            forwarder.slots[slot].source = .waiting
            if open { forwarder.requestKeyframe(forSlot: slot, at: now, &transports, &receiver) }
        }
        if open, !receiver.publications[publication].mirrors.isEmpty {
            // Subscribers on other workers need a keyframe too, and their requests may have arrived
            // before the gate opened.
            receiver.requestKeyframe(ofHighest: publication, at: now, &transports)
        }
    }
}
