import RTP
import WorkerInterface

/// Outgoing RTCP: sender reports, receiver reports and bandwidth estimates.
extension RTCPEndpoint {
    /// Maximum number of sender reports in one datagram; the others follow in the next.
    static let reportsPerDatagram = 8
    /// Maximum number of bytes of RTCP in one datagram before encryption.
    ///
    /// Every path carries that many, and the largest report and NACK fit.
    static let maximumLength = 1_200
    /// Maximum number of media SSRCs that a bandwidth estimate (REMB) names.
    static let estimatedSources = 16

    /// Encrypts and queues one RTCP datagram that `fill` writes.
    ///
    /// Unless the peer agreed to reduced-size RTCP, a receiver report and the CNAME come first (RFC
    /// 3550 §6.1); feedback alone would be discarded.
    mutating func sendRTCP(
        from transport: TransportIndex,
        startsWithReport: Bool = false,
        _ transports: inout Transports,
        _ forwarder: borrowing Forwarder,
        into output: inout Batch,
        _ fill: (inout OutputSpan<UInt8>) -> Void
    ) {
        guard output.free > 0, transports[transport].canSend,
            let path = transports[transport].path
        else { return }
        let needsReport = !startsWithReport && !transports[transport].configuration.reducedSizeRTCP
        let ssrc = transports[transport].ssrc
        let cname = transports[transport].cname
        let length = output.compose(limit: Self.maximumLength) { bytes in
            if needsReport {
                let none = UncountedArray<ReceptionReport>(capacity: 1)
                ReceiverReport.encode(sender: ssrc, reports: none.span, into: &bytes)
                SourceDescription.encode(ssrc: ssrc, cname: cname.span, into: &bytes)
            }
            fill(&bytes)
        }
        guard length > 0 else { return }
        var buffer = output.next
        guard let total = try? transports[transport].protectRTCP(&buffer, length: length) else {
            return
        }
        output.commit(length: total, to: path)
        counters.rtcpOut &+= 1
        counters.datagramsOut &+= 1
        counters.bytesOut &+= UInt64(total)
        transports.destinations[transport].count(length: total)
    }

    /// Sends the periodic reports: one for each stream sent and each received.
    ///
    /// Each sender of sound answers receivers' times with its own SSRC, by which browsers look up
    /// its round trip.
    mutating func sendReports(
        from transport: TransportIndex,
        at now: Instant,
        _ transports: inout Transports,
        _ receiver: inout Receiver,
        _ forwarder: inout Forwarder,
        into output: inout Batch
    ) {
        sampleViewer(transport, &transports, &forwarder)
        var reports = UncountedArray<ReceptionReport>(capacity: 8)
        collectReceptions(of: transport, at: now, into: &reports, &transports, &receiver)
        var senders = UncountedArray<SenderReport>(capacity: 8)
        collectSenders(
            .audio,
            of: transport,
            at: now,
            into: &senders,
            transports,
            receiver,
            forwarder
        )
        let audible = senders.count
        collectSenders(
            .video,
            of: transport,
            at: now,
            into: &senders,
            transports,
            receiver,
            forwarder
        )
        let answers = transports[transport].receiverTimes.answers(at: now)
        guard !reports.isEmpty || !senders.isEmpty || !answers.isEmpty else { return }
        let ssrc = transports[transport].ssrc
        let estimate = transports[transport].sendsREMB ? transports[transport].estimate.bitrate : 0
        let sources = mediaSources(of: transport, transports)
        var position = 0
        repeat {
            let isFirst = position == 0
            let room = isFirst ? Self.roomBeside(reports: reports.count) : Self.roomBesideName
            let count = Self.senderReports(in: room, answers: answers.count)
            let end = min(position &+ count, senders.count)
            let cname = transports[transport].cname
            sendRTCP(
                from: transport,
                startsWithReport: true,
                &transports,
                forwarder,
                into: &output
            ) { bytes in
                for index in position..<end { senders[index].encode(into: &bytes) }
                if isFirst || senders.isEmpty {
                    ReceiverReport.encode(sender: ssrc, reports: reports.span, into: &bytes)
                }
                SourceDescription.encode(ssrc: ssrc, cname: cname.span, into: &bytes)
                if !answers.isEmpty {
                    let voices = position..<min(max(audible, position), end)
                    for index in voices {
                        let sender = senders[index].sender
                        LastReceiverTime.encode(sender: sender, answers: answers.span, into: &bytes)
                    }
                    if isFirst, voices.isEmpty {
                        LastReceiverTime.encode(sender: ssrc, answers: answers.span, into: &bytes)
                    }
                }
                if isFirst, estimate > 0, !sources.isEmpty {
                    ReceiverEstimatedBitrate.encode(
                        sender: ssrc,
                        bitrate: UInt64(estimate),
                        sources: sources.span,
                        into: &bytes
                    )
                }
            }
            position = end
        } while position < senders.count && output.free > 0
    }

    /// Bytes of a datagram that a name leaves to sender reports.
    static var roomBesideName: Int {
        maximumLength &- SourceDescription.encodedSize(cnameLength: Transport.longestName)
    }

    /// Returns the bytes of a datagram that a name, so many reception reports, a bandwidth estimate
    /// and one set of answers without a sender report leave to sender reports.
    static func roomBeside(reports: Int) -> Int {
        roomBesideName &- ReceiverReport.encodedSize(reports: reports)
            &- ReceiverEstimatedBitrate.encodedSize(sources: estimatedSources)
            &- LastReceiverTime.encodedSize(answers: ReceiverTimes.capacity)
    }

    /// Returns how many sender reports fit, each with so many answers to receivers' times.
    static func senderReports(in room: Int, answers: Int) -> Int {
        let size =
            SenderReport.encodedSize
            &+ (answers > 0 ? LastReceiverTime.encodedSize(answers: answers) : 0)
        return min(max(room / size, 1), reportsPerDatagram)
    }

    private mutating func collectReceptions(
        of transport: TransportIndex,
        at now: Instant,
        into reports: inout UncountedArray<ReceptionReport>,
        _ transports: inout Transports,
        _ receiver: inout Receiver
    ) {
        for index in 0..<transports[transport].publications.count {
            let publication = transports[transport].publications[index]
            for position in 0..<receiver.publications[publication].encodings.count {
                let encoding = receiver.publications[publication].encodings[position]
                guard reports.count < ReceiverReport.maximumReports,
                    let ssrc = receiver.encodings[encoding].ssrc,
                    receiver.encodings[encoding].rate.isActive(within: 10_000, at: now)
                else { continue }
                let report = receiver.encodings[encoding].reception.report(ssrc: ssrc, at: now)
                transports[transport].quality.received.add(
                    fractionLost: report.fractionLost,
                    jitter: report.jitter,
                    clockRate: receiver.encodings[encoding].clockRate
                )
                counters.paths.publishers.add(
                    fractionLost: report.fractionLost,
                    jitter: report.jitter,
                    clockRate: receiver.encodings[encoding].clockRate
                )
                reports.append(report)
            }
        }
    }

    /// Samples what the viewer has reported since our last reports.
    ///
    /// So a viewer that reports more often than we do counts no more than others.
    private mutating func sampleViewer(
        _ transport: TransportIndex,
        _ transports: inout Transports,
        _ forwarder: inout Forwarder
    ) {
        for index in 0..<transports[transport].slots.count {
            let slot = transports[transport].slots[index]
            guard forwarder.slotRecords[slot].hasNewReport else { continue }
            forwarder.slotRecords[slot].hasNewReport = false
            counters.paths.viewers.add(
                fractionLost: forwarder.slotRecords[slot].fractionLost,
                jitter: forwarder.slotRecords[slot].jitter,
                clockRate: forwarder.clockRate(of: slot)
            )
        }
        guard transports[transport].hasNewRoundTrip,
            let roundTrip = transports[transport].roundTripNanoseconds
        else { return }
        transports[transport].hasNewRoundTrip = false
        counters.paths.viewers.roundTrip.add(Double(roundTrip) / 1e9)
    }

    /// Returns the media SSRCs that a bandwidth estimate (REMB) names.
    private func mediaSources(
        of transport: TransportIndex,
        _ transports: borrowing Transports
    ) -> UncountedArray<SSRC> {
        var sources = UncountedArray<SSRC>(capacity: 4)
        for index in 0..<transports[transport].streams.count
        where !transports[transport].streams[index].isRetransmission {
            guard sources.count < Self.estimatedSources else { break }
            sources.append(transports[transport].streams[index].ssrc)
        }
        return sources
    }

    private mutating func collectSenders(
        _ kind: MediaKind,
        of transport: TransportIndex,
        at now: Instant,
        into senders: inout UncountedArray<SenderReport>,
        _ transports: borrowing Transports,
        _ receiver: borrowing Receiver,
        _ forwarder: borrowing Forwarder
    ) {
        for index in 0..<transports[transport].slots.count {
            let slot = transports[transport].slots[index]
            guard forwarder.slots[slot].kind == kind,
                let report = senderReport(of: slot, at: now, transports, receiver, forwarder)
            else { continue }
            senders.append(report)
        }
    }

    /// Returns a sender report that maps the slot's RTP timestamps to the server's clock, for lip
    /// sync.
    ///
    /// Before the publisher's first report the mapping is unknown, and a guess would make playback
    /// jump.
    private func senderReport(
        of slot: SlotIndex,
        at now: Instant,
        _ transports: borrowing Transports,
        _ receiver: borrowing Receiver,
        _ forwarder: borrowing Forwarder
    ) -> SenderReport? {
        guard forwarder.slots[slot].isOpen, forwarder.slots[slot].rewriter.hasStarted else {
            return nil
        }
        let span = forwarder.slots[slot].rewriter.current
        guard let encoding = span.encoding.value, receiver.encodings.isOccupied(encoding),
            receiver.encodings[encoding].epoch == span.epoch,
            let captured = receiver.encodings[encoding].captured
        else { return nil }
        let passed = now.nanoseconds(since: captured.instant)
        guard abs(passed) < 60_000_000_000 else { return nil }
        let ticks = passed / 1_000 &* Int64(receiver.encodings[encoding].clockRate) / 1_000_000
        let timestamp =
            captured.timestamp
            &+ UInt32(truncatingIfNeeded: ticks) &+ span.timestampOffset
        return SenderReport(
            sender: forwarder.slots[slot].ssrc,
            ntp: transports.ntp(at: now),
            rtpTimestamp: timestamp,
            packets: UInt32(truncatingIfNeeded: forwarder.slots[slot].packets),
            octets: forwarder.slots[slot].octets
        )
    }
}
