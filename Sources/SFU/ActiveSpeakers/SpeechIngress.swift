import RTP
import WorkerInterface

/// Step 7b: speech detection, at each publication's home, from the loudness of packets that passed
/// the gate.
extension Core {
    /// Measures a packet's loudness, from its audio level extension (RFC 6464) or else from its
    /// Opus payload.
    mutating func listen(to info: PacketInfo, place: Int32, encoding: Int) {
        let publication = encodings[encoding].publication
        let start = Int(info.payloadOffset) + Int(info.primaryOffset)
        let end = Int(info.payloadOffset) + Int(info.payloadLength)
        let packets = pool.packets
        let packet = packets.bytes(at: place, count: end)
        // The duration of end-to-end encrypted audio cannot be parsed; most packets hold 20 ms.
        let opus = OpusPacket(packet.extracting(start..<end))
        // Rounds up: 2.5 ms become 3.
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

    /// Returns whether packets hold plain Opus.
    private func isPlain(_ encoding: Int) -> Bool {
        encodings[encoding].mapping?.format.codec == .opus
    }

    private mutating func sound(
        _ payload: Span<UInt8>,
        milliseconds: Int,
        of publication: Int,
        at now: Instant
    ) {
        guard !pendingAudioDecodes.isFull else {
            return opusLevelMeter.skip(&publications[publication].sound)
        }
        pendingAudioDecodes.append(
            payload,
            of: publications.handle(at: publication),
            milliseconds: milliseconds,
            at: now
        )
    }

    /// Passes one packet's level to a publication's speech detector.
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
        transports.schedule(transport, at: now)
    }

    /// Ends the speech of publications whose packets have stopped.
    ///
    /// Packets postpone the deadline, so the timer may fire early; it is then set again.
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

    /// Reports the start or end of speech to the control plane, which ranks the speakers.
    ///
    /// Only changes are reported, so silence costs nothing.
    mutating func note(_ change: SpeechDetector.Change?, of publication: Int) {
        let id = publications.handle(at: publication)
        switch change {
        case .started(let start): emit(.speech(id, .began(at: start)))
        case .stopped: emit(.speech(id, .ended))
        case nil: break
        }
    }
}
