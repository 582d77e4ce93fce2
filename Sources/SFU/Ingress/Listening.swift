import RTP
import WorkerInterface

/// Step 7b: who speaks. Each publication's home listens to the loudness of what passed the gate.
extension Core {
    /// Takes a packet's loudness from its level extension (RFC 6464).
    mutating func listen(to info: PacketInfo, place: Int32, encoding: Int) {
        let publication = encodings[encoding].publication
        let start = Int(info.payloadOffset) + Int(info.primaryOffset)
        let end = Int(info.payloadOffset) + Int(info.payloadLength)
        let packets = pool.packets
        let packet = packets.bytes(at: place, count: end)
        // End-to-end encrypted sound has no readable start: most packets hold this much.
        let opus = OpusPacket(packet.extracting(start..<end))
        // Rounded up: 2.5 ms are 3.
        let milliseconds = ((opus?.samples ?? 960) + 47) / 48
        if info.audioLevel.length == 1 {
            let level = AudioLevel(element: packet[Int(info.audioLevel.offset)])
            hear(level, milliseconds: milliseconds, on: publication, at: info.arrival)
        } else if opus != nil, info.primaryOffset > 0 || isPlain(encoding) {
            sound(
                packet.extracting(start..<end),
                milliseconds: milliseconds,
                of: publication,
                at: info.arrival
            )
        }
        let isCandidate = publications[publication].speech.isCandidate
        encodings[encoding].history.retentionMilliseconds =
            isCandidate ? History.prerollMilliseconds : History.quietMilliseconds
    }

    /// Whether packets hold nothing but Opus.
    private func isPlain(_ encoding: Int) -> Bool {
        encodings[encoding].mapping?.format.codec == .opus
    }

    private mutating func sound(
        _ payload: Span<UInt8>,
        milliseconds: Int,
        of publication: Int,
        at now: Instant
    ) {
        guard !soundings.isFull else { return opusLevels.skip(&publications[publication].sound) }
        soundings.append(
            payload,
            of: publications.handle(at: publication),
            milliseconds: milliseconds,
            at: now
        )
    }

    /// Lets a publication's detector hear one packet.
    mutating func hear(
        _ level: AudioLevel,
        milliseconds: Int,
        on publication: Int,
        at now: Instant
    ) {
        let change = publications[publication].speech.receive(
            level,
            milliseconds: milliseconds,
            at: now
        )
        note(change, of: publication)
        guard let transport = publications[publication].transport,
            transports[transport].speechDue == nil,
            let due = publications[publication].speech.deadline
        else { return }
        transports[transport].speechDue = due
        schedule(transport)
    }

    /// Ends the speech of those of whom nothing has come for too long.
    ///
    /// What comes puts a deadline off: then this is early, and comes again.
    mutating func expireSpeech(of transport: Int, at now: Instant) {
        var next: Instant?
        for index in 0..<transports[transport].publications.count {
            let publication = Int(transports[transport].publications[index])
            guard publications[publication].kind == .audio else { continue }
            note(publications[publication].speech.expire(at: now), of: publication)
            guard let due = publications[publication].speech.deadline else { continue }
            next = min(next ?? due, due)
        }
        transports[transport].speechDue = next
    }

    /// Tells the control plane, which ranks: only of changes, so that silence costs nothing.
    mutating func note(_ change: SpeechDetector.Change?, of publication: Int) {
        let id = publications.handle(at: publication)
        switch change {
        case .started(let start): emit(.speech(id, .began(at: start)))
        case .stopped: emit(.speech(id, .ended))
        case nil: break
        }
    }
}
