import RTP
import WorkerInterface

/// Processing of received RTCP.
extension RTCPEndpoint {
    mutating func receiveRTCP(
        _ bytes: Span<UInt8>,
        on path: Path,
        at now: Instant,
        _ transports: inout Transports,
        _ receiver: inout Receiver,
        _ forwarder: inout Forwarder,
        _ allocator: borrowing LayerAllocator,
        into output: inout Batch
    ) {
        guard let transport = transports.paths[path] else {
            return receiver.drops.count(.unknownSource)
        }
        guard transports[transport].srtp != nil else { return receiver.drops.count(.notConnected) }
        let budget =
            transports.limits.rtcpPerSecond &+ transports.limits.rtcpPerSlotAndSecond
            &* transports[transport].slots.count
        guard transports[transport].rtcpBudget.fill(budget, at: now)
        else { return receiver.drops.count(.rtcpRateLimited) }
        do throws(SRTPError) {
            var packets = receiver.pool.packets
            var clear = packets.mutableBytes(at: receiver.rtcpPlace)
            let length = try transports[transport].unprotectRTCP(bytes, into: &clear)
            _ = transports[transport].rtcpBudget.charge()
            counters.rtcpIn &+= 1
            transports[transport].packetsIn &+= 1
            transports[transport].bytesIn &+= UInt64(bytes.count)
            transports[transport].noteUnsignalledSSRC(SSRC(rawValue: bytes.u32(at: 4)))
            transports.heard(from: transport, at: now)
            transports.noteAuthenticatedPacket(transport, on: path, at: now, into: &output)
            readBlocks(
                receiver.rtcpPlace,
                length: length,
                from: transport,
                at: now,
                &transports,
                &receiver,
                &forwarder,
                allocator,
                into: &output
            )
        } catch {
            receiver.drops.count(DropReason(rtcp: error))
        }
    }

    /// Processes a compound packet block by block; reading stops at a block of invalid length (RFC
    /// 3550 A.2).
    private mutating func readBlocks(
        _ place: PacketPlace,
        length: Int,
        from transport: TransportIndex,
        at now: Instant,
        _ transports: inout Transports,
        _ receiver: inout Receiver,
        _ forwarder: inout Forwarder,
        _ allocator: borrowing LayerAllocator,
        into output: inout Batch
    ) {
        var position = 0
        // Tokens that the datagram has paid for and no block has used.
        var covered: Int64 = 1
        while position < length {
            guard length - position >= 4 else { return }
            let words = receiver.pool.packets.bytes(at: place, count: length).u16(at: position + 2)
            let next = position + 4 * (Int(words) + 1)
            guard next <= length else { return }
            read(
                place,
                at: position..<next,
                from: transport,
                covered: &covered,
                now,
                &output,
                &transports,
                &receiver,
                &forwarder,
                allocator
            )
            position = next
        }
    }

    private mutating func read(
        _ place: PacketPlace,
        at range: Range<Int>,
        from transport: TransportIndex,
        covered: inout Int64,
        _ now: Instant,
        _ output: inout Batch,
        _ transports: inout Transports,
        _ receiver: inout Receiver,
        _ forwarder: inout Forwarder,
        _ allocator: borrowing LayerAllocator
    ) {
        let packets = receiver.pool.packets
        var blocks = RTCPBlocks(
            packets.bytes(at: place, count: range.upperBound).extracting(range)
        )
        guard let block = blocks.next() else { return }
        let cost = RTCPBudget.cost(of: block)
        guard cost <= covered || transports[transport].rtcpBudget.charge(cost &- covered) else {
            counters.feedbackOverBudget &+= 1
            return
        }
        covered = max(0, covered &- cost)
        switch block.type {
        case RTCPType.senderReport:
            guard let report = try? SenderReport(block) else { return }
            note(report, from: transport, at: now, &transports, &receiver)
            noteReceptions(block, from: transport, at: now, &transports, &forwarder)
        case RTCPType.receiverReport:
            noteReceptions(block, from: transport, at: now, &transports, &forwarder)
        case RTCPType.extendedReport:
            guard let time = try? ReceiverReferenceTime(block) else { return }
            transports[transport].receiverTimes.note(time, at: now)
        case RTCPType.transportFeedback where block.count == 1:
            guard let request = try? GenericNACK(block) else { return }
            guard let slot = slot(of: request.media, transport: transport, transports, forwarder)
            else { return }
            retransmit(
                request,
                to: slot,
                at: now,
                &transports,
                &receiver,
                &forwarder,
                allocator,
                into: &output
            )
        case RTCPType.transportFeedback where block.count == 15:
            guard let feedback = try? TransportFeedback(block) else { return }
            transports[transport].bandwidth?.receive(feedback, at: now)
            forwarder.noteArrivedFrames(of: transport, &transports)
            repeatLost(
                on: transport,
                at: now,
                &transports,
                receiver,
                &forwarder,
                allocator,
                into: &output
            )
            transports.noteEstimate(of: transport, at: now)
            transports.schedule(transport, at: now)
        case RTCPType.payloadFeedback where block.count == 15:
            guard let estimate = try? ReceiverEstimatedBitrate(block) else { return }
            let sources = sources(of: estimate, transport: transport, transports, forwarder)
            transports[transport].bandwidth?
                .receiveREMB(estimate.bitrate, of: sources, at: now)
            transports.noteEstimate(of: transport, at: now)
        case RTCPType.payloadFeedback where block.count == 1:
            guard let loss = try? PictureLossIndication(block) else { return }
            handlePictureLoss(
                of: loss.media,
                transport: transport,
                at: now,
                &transports,
                &receiver,
                &forwarder
            )
        case RTCPType.payloadFeedback where block.count == 4:
            guard let request = try? FullIntraRequest(block) else { return }
            for index in 0..<request.count {
                handlePictureLoss(
                    of: request[index].media,
                    transport: transport,
                    at: now,
                    &transports,
                    &receiver,
                    &forwarder
                )
            }
        default:
            break
        }
    }

    /// Returns the slot that sends with this SSRC, if there is one.
    private func slot(
        of ssrc: SSRC,
        transport: TransportIndex,
        _ transports: borrowing Transports,
        _ forwarder: borrowing Forwarder
    ) -> SlotIndex? {
        for index in 0..<transports[transport].slots.count {
            let slot = transports[transport].slots[index]
            if forwarder.slots[slot].ssrc == ssrc { return slot }
        }
        return nil
    }

    /// Returns what an estimate is about.
    ///
    /// One that lists a video stream alone, or with its RTX, is of that; anything else is about the
    /// whole transport: a browser lists all that it has heard lately.
    private func sources(
        of estimate: borrowing ReceiverEstimatedBitrate,
        transport: TransportIndex,
        _ transports: borrowing Transports,
        _ forwarder: borrowing Forwarder
    ) -> EstimatedSources {
        guard (1...2).contains(estimate.count) else { return .all }
        for place in 0..<estimate.count {
            guard let slot = slot(of: estimate[place], transport: transport, transports, forwarder),
                forwarder.slots[slot].kind.isVideo
            else { continue }
            let repair = forwarder.slotRecords[slot].configuration.rtxSSRC
            guard estimate.count == 1 || estimate[1 &- place] == repair else { return .all }
            return EstimatedSources(estimate[place])
        }
        return .all
    }

    /// Stores a sender report's clock, for lip sync and round-trip times (RFC 3550 §6.4.1).
    private mutating func note(
        _ report: SenderReport,
        from transport: TransportIndex,
        at now: Instant,
        _ transports: inout Transports,
        _ receiver: inout Receiver
    ) {
        guard let stream = transports[transport].stream(of: report.sender),
            !stream.isRetransmission
        else { return }
        receiver.encodings[stream.encoding].reception.receive(report, at: now)
        transports[transport].clock.receive(report.ntp, at: now)
        noteCaptureTimes(of: transport, transports, &receiver)
    }

    /// Converts the last sender reports of all the transport's streams to capture times, with one
    /// clock offset for all.
    private mutating func noteCaptureTimes(
        of transport: TransportIndex,
        _ transports: borrowing Transports,
        _ receiver: inout Receiver
    ) {
        for index in 0..<transports[transport].publications.count {
            let publication = transports[transport].publications[index]
            for position in 0..<receiver.publications[publication].encodings.count {
                let encoding = receiver.publications[publication].encodings[position]
                guard receiver.encodings[encoding].reception.senderReportArrival != nil,
                    let instant = transports[transport].clock.instant(
                        of: receiver.encodings[encoding].reception.senderNTP
                    )
                else { continue }
                let timestamp = receiver.encodings[encoding].reception.senderTimestamp
                receiver.encodings[encoding].captured = CaptureTime(
                    instant: instant,
                    timestamp: timestamp
                )
            }
        }
    }

    private mutating func noteReceptions(
        _ block: borrowing RTCPBlock,
        from transport: TransportIndex,
        at now: Instant,
        _ transports: inout Transports,
        _ forwarder: inout Forwarder
    ) {
        guard let reports = try? ReceptionReports(copy block) else { return }
        var worst: UInt8 = 0
        var isOurs = false
        for index in 0..<reports.count {
            let report = reports[index]
            guard let slot = slot(of: report.ssrc, transport: transport, transports, forwarder)
            else { continue }
            forwarder.slotRecords[slot].packetsLost = Int64(report.cumulativeLost)
            forwarder.slotRecords[slot].fractionLost = report.fractionLost
            forwarder.slotRecords[slot].jitter = report.jitter
            forwarder.slotRecords[slot].hasNewReport = true
            transports[transport].quality.sent.add(
                fractionLost: report.fractionLost,
                jitter: report.jitter,
                clockRate: forwarder.clockRate(of: slot)
            )
            noteRoundTrip(report, transport: transport, at: now, &transports)
            worst = max(worst, report.fractionLost)
            isOurs = true
        }
        guard isOurs else { return }
        let roundTrip = transports[transport].roundTripNanoseconds.map { Int($0 / 1_000_000) }
        transports[transport].bandwidth?
            .receiveLoss(fraction: worst, roundTripMilliseconds: roundTrip, at: now)
        if let estimate = transports[transport].bandwidth?.usableEstimate(at: now) {
            transports[transport].quality.add(estimate: estimate)
        }
        transports.noteEstimate(of: transport, at: now)
    }

    /// Computes the round-trip time: now minus LSR minus DLSR, in the reports' 16.16 fixed-point
    /// seconds (RFC 3550 §6.4.1).
    private mutating func noteRoundTrip(
        _ report: ReceptionReport,
        transport: TransportIndex,
        at now: Instant,
        _ transports: inout Transports
    ) {
        guard report.lastSenderReport != 0 else { return }
        let passed =
            transports.ntp(at: now).compact &- report.lastSenderReport
            &- report.delaySinceLastSenderReport
        // A value of ten seconds or more, or a negative one, which wraps around, means a clock
        // error.
        guard passed < 10 << 16 else { return }
        transports[transport].roundTripNanoseconds = (Int64(passed) * 1_000_000_000) >> 16
        transports[transport].hasNewRoundTrip = true
        transports[transport].quality.roundTrip.add(Double(passed) / 65_536)
    }

    /// Requests a keyframe for a subscriber that has sent PLI or FIR.
    private mutating func handlePictureLoss(
        of ssrc: SSRC,
        transport: TransportIndex,
        at now: Instant,
        _ transports: inout Transports,
        _ receiver: inout Receiver,
        _ forwarder: inout Forwarder
    ) {
        guard let slot = slot(of: ssrc, transport: transport, transports, forwarder),
            forwarder.slots[slot].kind == .video
        else { return }
        forwarder.slotRecords[slot].pictureLossesReceived &+= 1
        forwarder.notePictureRequest(of: slot, at: now, receiver)
        guard forwarder.slots[slot].isOpen else { return }
        switch forwarder.slots[slot].source {
        case .idle: break
        case .waiting: forwarder.requestKeyframe(forSlot: slot, at: now, &transports, &receiver)
        case .flowing(let encoding), .switching(from: let encoding, to: _):
            receiver.requestKeyframe(of: encoding, at: now, &transports)
        }
    }
}

extension DropReason {
    init(rtcp error: SRTPError) {
        switch error {
        case .malformed: self = .malformedRTCP
        case .replay: self = .srtcpReplay
        case .authentication, .exhausted, .streamLimit, .unavailable: self = .srtcpAuthentication
        }
    }
}
