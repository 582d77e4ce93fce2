import RTP
import WorkerInterface

/// Step 4: lookup of the transport by address, SRTP authentication and decryption.
extension Core {
    mutating func receiveRTP(
        _ bytes: Span<UInt8>,
        on path: Path,
        at now: Instant,
        into output: inout Batch
    ) {
        let owner = transports.paths[path]
        guard owner >= 0 else { return drops.count(.unknownSource) }
        let transport = Int(owner)
        guard transports[transport].srtp != nil else { return drops.count(.notConnected) }
        statistics.rtpIn &+= 1
        transports[transport].packetsIn &+= 1
        transports[transport].bytesIn &+= UInt64(bytes.count)

        guard bytes.count >= 12 else { return drops.count(.malformedRTP) }
        let ssrc = SSRC(rawValue: bytes.u32(at: 8))
        guard transports[transport].admits(ssrc, limit: limits.newStreamsPerSecond, at: now)
        else { return drops.count(.streamRateLimited) }
        // Bounds the queue even if the caller forgets to flush.
        guard arrivalCount < Self.batchCapacity else { return drops.count(.bufferFull) }
        let place = pool.allocate()
        guard place >= 0 else { return drops.count(.bufferFull) }
        do throws(SRTPError) {
            let length = try decrypt(bytes, transport: transport, into: place)
            transports.heard(from: transport, at: now)
            transports.noteAuthenticatedPacket(transport, on: path, at: now, into: &output)
            routeFindings(at: now)
            if let drop = admit(place, length: length, from: transport, at: now) {
                drops.count(drop)
                pool.release(place)
            }
        } catch {
            drops.count(DropReason(error))
            pool.release(place)
        }
    }

    private mutating func decrypt(
        _ bytes: Span<UInt8>,
        transport: Int,
        into place: Int32
    ) throws(SRTPError) -> Int {
        var packets = pool.packets
        var clear = packets.mutableBytes(at: place)
        return try transports[transport].unprotectRTP(bytes, into: &clear)
    }

    /// Finds the packet's stream (step 5) and passes it on to the further steps of ingress.
    ///
    /// Returns the reason to drop it, or `nil` if the packet was kept.
    private mutating func admit(
        _ place: Int32,
        length: Int,
        from transport: Int,
        at now: Instant
    ) -> DropReason? {
        var info = PacketInfo()
        var labels = StreamLabels()
        info.arrival = now
        let ssrc: SSRC
        let packets = pool.packets
        do throws(PacketError) {
            let packet = try Packet(packets.bytes(at: place, count: length))
            ssrc = packet.ssrc
            info.describe(packet)
            labels.read(packet, map: transports[transport].extensions, into: &info)
        } catch {
            return .malformedRTP
        }
        if let number = labels.transportSequence {
            noteArrival(number, transport: transport, at: now)
        }
        transports[transport].estimate.receive(bytes: length)

        let stream: Transport.Stream
        switch find(ssrc, info: info, labels: labels, place: place, transport: transport) {
        case .success(let found): stream = found
        case .failure(let error):
            noteUnsignalledSSRC(ssrc, transport: transport)
            return error.reason
        }
        let encoding = Int(stream.encoding)
        info.encoding = UInt32(bitPattern: stream.encoding)
        if stream.isRetransmission, let drop = unwrapRTX(&info, place: place, encoding: encoding) {
            return drop
        }
        return enter(info, place: place, length: length, encoding: encoding)
    }

    private mutating func noteArrival(
        _ number: SequenceNumber,
        transport: Int,
        at now: Instant
    ) {
        guard transports[transport].sendsTransportFeedback else { return }
        if transports[transport].arrivals == nil { transports[transport].arrivals = ArrivalLog() }
        transports[transport].arrivals?.receive(number, at: now)
        guard transports[transport].feedbackDue == nil else { return }
        transports[transport].feedbackDue = now.advanced(
            milliseconds: ArrivalLog.intervalMilliseconds
        )
        transports.schedule(transport, at: now)
    }

    /// Removes the RTX header, which restores the original packet (RFC 4588 §4).
    private mutating func unwrapRTX(
        _ info: inout PacketInfo,
        place: Int32,
        encoding: Int
    ) -> DropReason? {
        guard info.payloadLength > 2 else { return .padding }
        let end = Int(info.payloadOffset) + 2
        let original = pool.packets.bytes(at: place, count: end).u16(at: end - 2)
        let publication = encodings[encoding].publication
        guard let mapping = publications[publication].mapping(of: info.payloadType),
            mapping.rtxPayloadType == info.payloadType
        else { return .unknownPayloadType }
        info.sequence = SequenceNumber(rawValue: original)
        info.payloadOffset += 2
        info.payloadLength -= 2
        info.payloadType = mapping.payloadType
        info.flags.insert(.repaired)
        encodings[encoding].retransmissionsReceived &+= 1
        return nil
    }

    /// Steps 6 and 7: updates numbering and statistics, applies the gate and the rate limit,
    /// inspects the payload, and adds the packet to the batch.
    private mutating func enter(
        _ info: PacketInfo,
        place: Int32,
        length: Int,
        encoding: Int
    ) -> DropReason? {
        var info = info
        let publication = encodings[encoding].publication
        let verdict = encodings[encoding].window.insert(
            info.sequence,
            isRepair: info.flags.contains(.repaired)
        )
        switch verdict {
        case .duplicate: return .duplicate
        case .tooOld: return .tooOld
        case .newest, .late, .restarted: break
        }
        count(verdict, info: &info, length: length, encoding: encoding)
        guard publications[publication].isOpen else {
            encodings[encoding].losses.removeAll()
            return .gated
        }
        guard !isStaleMedia(publication) else {
            discardStale(encoding)
            return .stale
        }
        if encodings[encoding].isBroken { resumeAfterGap(encoding, at: info.arrival) }
        info.epoch = encodings[encoding].epoch
        if let drop = police(info, length: length, encoding: encoding) {
            return drop
        }
        if info.payloadLength == 0 {
            info.flags.insert(.skipped)
            info.points = .none
            info.drop = .padding
        } else if let drop = inspect(&info, place: place, encoding: encoding) {
            return drop
        } else if encodings[encoding].kind.isAudio {
            listen(to: info, place: place, encoding: encoding)
        }
        keep(info, place: place, encoding: encoding, publication: publication)
        return nil
    }

    private mutating func count(
        _ verdict: SequenceWindow.Verdict,
        info: inout PacketInfo,
        length: Int,
        encoding: Int
    ) {
        let newest = encodings[encoding].window.highest ?? 0
        let extended =
            newest &+ info.sequence.distance(from: SequenceNumber(truncating: newest))
        info.number = Int64(extended)
        if verdict == .restarted {
            resumeAfterGap(encoding, at: info.arrival)
            encodings[encoding].reception.restart(at: extended)
        }
        if case .newest(let gap) = verdict {
            expectRetransmission(of: gap, before: newest, encoding: encoding, at: info.arrival)
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
        encoding: Int,
        at now: Instant
    ) {
        guard gap > 0, let transport = publications[encodings[encoding].publication].transport
        else { return }
        transports[transport].estimate.lose(gap)
        // Retransmissions may arrive before the stream's first packet. Without the stream's SSRC no
        // NACK can be sent, and its timer would stay due forever.
        guard encodings[encoding].ssrc != nil, let mapping = encodings[encoding].mapping,
            mapping.feedback.contains(.nack)
        else { return }
        let abandoned = encodings[encoding].losses.abandoned
        let silence = encodings[encoding].rate.lastArrival.map { now.milliseconds(since: $0) } ?? 0
        encodings[encoding].losses.expect(gap: gap, before: newest, silence: silence, at: now)
        if encodings[encoding].losses.abandoned != abandoned {
            requestKeyframeAfterLoss(of: encoding, now)
        }
        let due = now.advanced(milliseconds: LossTracker.reorderMilliseconds)
        if transports[transport].nackDue.map({ $0 > due }) ?? true {
            transports[transport].nackDue = due
            transports.schedule(transport, at: now)
        }
    }

    /// Adds the packet to the current batch and to its encoding's history.
    mutating func keep(
        _ info: PacketInfo,
        place: Int32,
        encoding: Int,
        publication: Int
    ) {
        pool[place] = info
        var isKept = false
        if !info.flags.contains(.skipped) {
            isKept = encodings[encoding].history.insert(
                place,
                number: Int(info.number),
                at: info.arrival,
                pool: &pool
            )
        }
        if !isKept { pool.retire(place) }
        publications[publication].append(place, pool: &pool)
        arrivalCount &+= 1
        if !publications[publication].isQueued {
            publications[publication].isQueued = true
            queued.append(Int32(publication))
        }
    }
}

extension DropReason {
    init(_ error: SRTPError) {
        switch error {
        case .replay: self = .srtpReplay
        case .streamLimit: self = .streamLimit
        case .malformed: self = .malformedRTP
        case .authentication, .exhausted, .unavailable: self = .srtpAuthentication
        }
    }
}
