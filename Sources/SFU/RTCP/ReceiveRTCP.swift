import RTP
import WorkerInterface

/// Processing of received RTCP.
extension Core {
    mutating func receiveRTCP(
        _ bytes: Span<UInt8>,
        on path: Path,
        at now: Instant,
        into output: inout Batch
    ) {
        let owner = transports.paths[path]
        guard owner >= 0 else { return drops.count(.unknownSource) }
        let transport = Int(owner)
        guard transports[transport].srtp != nil else { return drops.count(.notConnected) }
        let budget =
            limits.rtcpPerSecond &+ limits.rtcpPerSlotAndSecond
            &* transports[transport].slots.count
        guard transports[transport].rtcpBudget.fill(budget, at: now)
        else { return drops.count(.rtcpRateLimited) }
        do throws(SRTPError) {
            var packets = pool.packets
            var clear = packets.mutableBytes(at: rtcpPlace)
            let length = try transports[transport].unprotectRTCP(bytes, into: &clear)
            _ = transports[transport].rtcpBudget.charge()
            statistics.rtcpIn &+= 1
            transports[transport].packetsIn &+= 1
            transports[transport].bytesIn &+= UInt64(bytes.count)
            noteUnsignalledSSRC(SSRC(rawValue: bytes.u32(at: 4)), transport: transport)
            transports.heard(from: transport, at: now)
            transports.noteAuthenticatedPacket(transport, on: path, at: now, into: &output)
            routeFindings(at: now)
            readBlocks(rtcpPlace, length: length, from: transport, at: now, into: &output)
        } catch {
            drops.count(DropReason(rtcp: error))
        }
    }

    /// Processes a compound packet block by block; reading stops at a block of invalid length (RFC
    /// 3550 A.2).
    private mutating func readBlocks(
        _ place: Int32,
        length: Int,
        from transport: Int,
        at now: Instant,
        into output: inout Batch
    ) {
        var position = 0
        // Tokens that the datagram has paid for and no block has used.
        var covered: Int64 = 1
        while position < length {
            guard length - position >= 4 else { return }
            let words = pool.packets.bytes(at: place, count: length).u16(at: position + 2)
            let next = position + 4 * (Int(words) + 1)
            guard next <= length else { return }
            read(place, at: position..<next, from: transport, covered: &covered, now, &output)
            position = next
        }
    }

    private mutating func read(
        _ place: Int32,
        at range: Range<Int>,
        from transport: Int,
        covered: inout Int64,
        _ now: Instant,
        _ output: inout Batch
    ) {
        let packets = pool.packets
        var blocks = RTCPBlocks(
            packets.bytes(at: place, count: range.upperBound).extracting(range)
        )
        guard let block = blocks.next() else { return }
        let cost = RTCPBudget.cost(of: block)
        guard cost <= covered || transports[transport].rtcpBudget.charge(cost &- covered) else {
            statistics.feedbackOverBudget &+= 1
            return
        }
        covered = max(0, covered &- cost)
        switch block.type {
        case RTCPType.senderReport:
            guard let report = try? SenderReport(block) else { return }
            note(report, from: transport, at: now)
            noteReceptions(block, from: transport, at: now)
        case RTCPType.receiverReport:
            noteReceptions(block, from: transport, at: now)
        case RTCPType.transportFeedback where block.count == 1:
            guard let request = try? GenericNACK(block) else { return }
            let slot = slot(of: request.media, transport: transport)
            guard slot >= 0 else { return }
            retransmit(request, to: slot, at: now, into: &output)
        case RTCPType.transportFeedback where block.count == 15:
            guard let feedback = try? TransportFeedback(block) else { return }
            transports[transport].bandwidth?.receive(feedback, at: now)
            noteEstimate(of: transport, at: now)
            transports.schedule(transport, at: now)
        case RTCPType.payloadFeedback where block.count == 15:
            guard let estimate = try? ReceiverEstimatedBitrate(block) else { return }
            transports[transport].bandwidth?.receiveREMB(estimate.bitrate, at: now)
            noteEstimate(of: transport, at: now)
        case RTCPType.payloadFeedback where block.count == 1:
            guard let loss = try? PictureLossIndication(block) else { return }
            handlePictureLoss(of: loss.media, transport: transport, at: now)
        case RTCPType.payloadFeedback where block.count == 4:
            guard let request = try? FullIntraRequest(block) else { return }
            for index in 0..<request.count {
                handlePictureLoss(of: request[index].media, transport: transport, at: now)
            }
        default:
            break
        }
    }

    /// Returns the slot that sends with this SSRC, or -1.
    private func slot(of ssrc: SSRC, transport: Int) -> Int {
        for index in 0..<transports[transport].slots.count {
            let slot = Int(transports[transport].slots[index])
            if slots[slot].ssrc == ssrc { return slot }
        }
        return -1
    }

    /// Stores a sender report's clock, for lip sync and round-trip times (RFC 3550 §6.4.1).
    private mutating func note(_ report: SenderReport, from transport: Int, at now: Instant) {
        guard let stream = transports[transport].stream(of: report.sender),
            !stream.isRetransmission
        else { return }
        encodings[Int(stream.encoding)].reception.receive(report, at: now)
        transports[transport].clock.receive(report.ntp, at: now)
        noteCaptureTimes(of: transport)
    }

    /// Converts the last sender reports of all the transport's streams to capture times, with one
    /// clock offset for all.
    private mutating func noteCaptureTimes(of transport: Int) {
        for index in 0..<transports[transport].publications.count {
            let publication = Int(transports[transport].publications[index])
            for position in 0..<publications[publication].encodings.count {
                let encoding = Int(publications[publication].encodings[position])
                guard encodings[encoding].reception.senderReportArrival != nil,
                    let instant = transports[transport].clock.instant(
                        of: encodings[encoding].reception.senderNTP
                    )
                else { continue }
                let timestamp = encodings[encoding].reception.senderTimestamp
                encodings[encoding].captured = CaptureTime(instant: instant, timestamp: timestamp)
            }
        }
    }

    private mutating func noteReceptions(
        _ block: borrowing RTCPBlock,
        from transport: Int,
        at now: Instant
    ) {
        guard let reports = try? ReceptionReports(copy block) else { return }
        var worst: UInt8 = 0
        var isOurs = false
        for index in 0..<reports.count {
            let report = reports[index]
            let slot = slot(of: report.ssrc, transport: transport)
            guard slot >= 0 else { continue }
            slotRecords[slot].packetsLost = Int64(report.cumulativeLost)
            slotRecords[slot].fractionLost = report.fractionLost
            slotRecords[slot].jitter = report.jitter
            noteRoundTrip(report, transport: transport, at: now)
            worst = max(worst, report.fractionLost)
            isOurs = true
        }
        guard isOurs else { return }
        let roundTrip = transports[transport].roundTripNanoseconds.map { Int($0 / 1_000_000) }
        transports[transport].bandwidth?
            .receiveLoss(fraction: worst, roundTripMilliseconds: roundTrip, at: now)
        noteEstimate(of: transport, at: now)
    }

    /// Computes the round-trip time: now minus LSR minus DLSR, in the reports' 16.16 fixed-point
    /// seconds (RFC 3550 §6.4.1).
    private mutating func noteRoundTrip(
        _ report: ReceptionReport,
        transport: Int,
        at now: Instant
    ) {
        guard report.lastSenderReport != 0 else { return }
        let passed =
            ntp(at: now).compact &- report.lastSenderReport
            &- report.delaySinceLastSenderReport
        // A value of ten seconds or more, or a negative one, which wraps around, means a clock
        // error.
        guard passed < 10 << 16 else { return }
        transports[transport].roundTripNanoseconds = (Int64(passed) * 1_000_000_000) >> 16
    }

    /// Requests a keyframe for a subscriber that has sent PLI or FIR.
    private mutating func handlePictureLoss(of ssrc: SSRC, transport: Int, at now: Instant) {
        let slot = slot(of: ssrc, transport: transport)
        guard slot >= 0, slots[slot].kind == .video else { return }
        slotRecords[slot].pictureLossesReceived &+= 1
        guard slots[slot].isOpen else { return }
        switch slots[slot].source {
        case .idle: break
        case .waiting: requestKeyframe(forSlot: slot, at: now)
        case .flowing(let encoding), .switching(from: let encoding, to: _):
            requestKeyframe(of: Int(encoding), at: now)
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
