import RTP
import WorkerInterface

/// Numbering and statistics of a received RTP packet, and the gate.
extension Receiver {
    /// Extends the sequence number, and counts the packet for loss, jitter and rate.
    mutating func recordArrival(
        of packet: inout ReceivedPacket,
        _ transports: inout Transports
    ) throws(DropReason) {
        let isFirst = encodings[packet.encoding].window.highest == nil
        let verdict = encodings[packet.encoding].window.insert(
            packet.info.sequence,
            isRepair: packet.info.flags.contains(.repaired)
        )
        switch verdict {
        case .duplicate: throw .duplicate
        case .tooOld: throw .tooOld
        case .newest, .late, .restarted: break
        }
        count(
            verdict,
            info: &packet.info,
            length: packet.length,
            encoding: packet.encoding,
            &transports
        )
        if isFirst || verdict == .restarted {
            saveBindings(of: packet.transport, &transports)
        }
    }

    private mutating func count(
        _ verdict: SequenceWindow.Verdict,
        info: inout PacketInfo,
        length: Int,
        encoding: EncodingIndex,
        _ transports: inout Transports
    ) {
        let newest = encodings[encoding].window.highest ?? 0
        let extended =
            newest &+ info.sequence.distance(from: SequenceNumber(truncating: newest))
        info.number = Int64(extended)
        if verdict == .restarted {
            resumeAfterGap(encoding, at: info.arrival, &transports)
            encodings[encoding].reception.restart(at: extended)
            encodings[encoding].watch.restart()
        }
        encodings[encoding].watch
            .receive(
                number: info.number,
                timestamp: info.timestamp,
                clockRate: encodings[encoding].clockRate,
                at: info.arrival
            )
        if case .newest(let gap) = verdict {
            expectRetransmission(
                of: gap,
                before: newest,
                encoding: encoding,
                payloadType: info.payloadType,
                at: info.arrival,
                &transports
            )
        } else {
            encodings[encoding].losses.found(extended)
        }
        encodings[encoding].reception.receive(
            extended: extended,
            timestamp: info.timestamp,
            length: length,
            clockRate: encodings[encoding].clockRate,
            at: info.arrival
        )
        // A burst that was queued over seconds would distort the measured rate.
        guard staleMedia != .everything else { return }
        encodings[encoding].rate.receive(
            bytes: length,
            endsFrame: info.flags.contains(.marker),
            isMedia: info.payloadLength > 0,
            at: info.arrival
        )
    }

    /// Tracks missing packets for NACKs, if the publisher supports them.
    private mutating func expectRetransmission(
        of gap: Int,
        before newest: Int,
        encoding: EncodingIndex,
        payloadType: UInt8,
        at now: Instant,
        _ transports: inout Transports
    ) {
        guard gap > 0, let transport = publications[encodings[encoding].publication].transport
        else { return }
        transports[transport].estimate.lose(gap)
        // Retransmissions may arrive before the stream's first packet. Without the stream's SSRC no
        // NACK can be sent, and its timer would stay due forever.
        guard encodings[encoding].ssrc != nil,
            let mapping = encodings[encoding].mapping
                // The first packet that follows those of an earlier process.
                ?? publications[encodings[encoding].publication].mapping(of: payloadType),
            mapping.feedback.contains(.nack)
        else { return }
        let abandoned = encodings[encoding].losses.abandoned
        let silence = encodings[encoding].rate.lastArrival.map { now.milliseconds(since: $0) } ?? 0
        encodings[encoding].losses.expect(gap: gap, before: newest, silence: silence, at: now)
        if encodings[encoding].losses.abandoned != abandoned {
            requestKeyframeAfterLoss(of: encoding, now, &transports)
        }
        let due = now.advanced(milliseconds: LossTracker.reorderMilliseconds)
        if transports[transport].nackDue.map({ $0 > due }) ?? true {
            transports[transport].nackDue = due
            transports.schedule(transport, at: now)
        }
    }

    /// Refuses packets of a closed gate, and stale ones.
    mutating func checkGate(
        of packet: inout ReceivedPacket,
        _ transports: inout Transports
    ) throws(DropReason) {
        let encoding = packet.encoding
        guard publications[packet.publication].isOpen else {
            encodings[encoding].losses.removeAll()
            throw .gated
        }
        guard !isStaleMedia(packet.publication) else {
            discardStale(encoding)
            throw .stale
        }
        if encodings[encoding].isBroken {
            resumeAfterGap(encoding, at: packet.info.arrival, &transports)
        }
        packet.info.epoch = encodings[encoding].epoch
    }
}
