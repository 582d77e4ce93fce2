import RTP
import WorkerInterface

/// Speech detection, at each publication's home, from the loudness of packets that passed the gate.
extension Receiver {
    /// Measures a packet's loudness, from its audio level extension (RFC 6464) or else from its
    /// Opus payload.
    mutating func detectSpeech(in packet: borrowing ReceivedPacket, _ transports: inout Transports)
    {
        let encoding = packet.encoding
        let publication = packet.publication
        guard encodings[encoding].kind.isAudio, packet.info.payloadLength > 0 else { return }
        let info = packet.info
        let start = Int(info.payloadOffset) + Int(info.primaryOffset)
        let end = Int(info.payloadOffset) + Int(info.payloadLength)
        let packets = pool.packets
        let bytes = packets.bytes(at: packet.place, count: end)
        // The duration of end-to-end encrypted audio cannot be parsed; most packets hold 20 ms.
        let opus = OpusPacket(bytes.extracting(start..<end))
        // Rounds up: 2.5 ms become 3.
        let milliseconds = ((opus?.samples ?? 960) + 47) / 48
        if info.audioLevel.length == 1 {
            let level = AudioLevel(element: bytes[Int(info.audioLevel.offset)])
            hear(level, milliseconds: milliseconds, on: publication, at: info.arrival, &transports)
        } else if opus != nil, info.primaryOffset > 0 || isPlain(encoding) {
            sound(
                bytes.extracting(start..<end),
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
    private func isPlain(_ encoding: EncodingIndex) -> Bool {
        encodings[encoding].mapping?.format.codec == .opus
    }

    private mutating func sound(
        _ payload: Span<UInt8>,
        milliseconds: Int,
        of publication: PublicationIndex,
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
        on publication: PublicationIndex,
        at now: Instant,
        _ transports: inout Transports
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
    mutating func expireSpeech(
        of transport: TransportIndex,
        at now: Instant,
        _ transports: inout Transports
    ) {
        var next: Instant?
        for index in 0..<transports[transport].publications.count {
            let publication = transports[transport].publications[index]
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
    mutating func note(_ change: SpeechDetector.Change?, of publication: PublicationIndex) {
        let id = publications.handle(at: publication)
        switch change {
        case .started(let start): events.append(.speech(id, .began(at: start)))
        case .stopped: events.append(.speech(id, .ended))
        case nil: break
        }
    }

    /// Measures the queued payloads, after the batch that they came with has been forwarded.
    mutating func measurePendingAudio(at now: Instant, _ transports: inout Transports) {
        guard !pendingAudioDecodes.packets.isEmpty else { return }
        pendingAudioDecodes.refill(at: now)
        // Taken out, so that payloads can be borrowed while the rest of the core is mutated.
        var taken = PendingAudioDecodes()
        swap(&taken, &pendingAudioDecodes)
        let first = opusLevelMeter.decodes
        let allowed = taken.allowed
        for index in 0..<taken.packets.count {
            let packet = taken.packets[index]
            let publication = packet.publication.place
            // Packets from before the gate closed or opened no longer count.
            guard publications.contains(packet.publication), publications[publication].isOpen,
                packet.arrival > publications[publication].openedAt
            else { continue }
            guard Int64(clamping: opusLevelMeter.decodes &- first) < allowed else {
                opusLevelMeter.skip(&publications[publication].sound)
                continue
            }
            let start = Int(packet.start)
            let payload = taken.payloads.span.extracting(start..<start + Int(packet.length))
            guard
                let level = opusLevelMeter.level(
                    of: payload,
                    in: &publications[publication].sound
                )
            else { continue }
            hear(
                level,
                milliseconds: Int(packet.milliseconds),
                on: publication,
                at: packet.arrival,
                &transports
            )
        }
        taken.spend(decodes: opusLevelMeter.decodes &- first)
        taken.removeAll()
        swap(&taken, &pendingAudioDecodes)
    }
}
