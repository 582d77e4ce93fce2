import RTP
import WorkerInterface

/// Outgoing RTCP: sender reports, receiver reports and bandwidth estimates.
extension Core {
    /// Maximum number of sender reports in one datagram; the others follow in the next.
    private static let reportsPerDatagram = 8
    /// Maximum number of bytes of RTCP in one datagram before encryption.
    ///
    /// Every path carries that many, and the largest report and NACK fit.
    private static let maximumLength = 1_200

    /// Encrypts and queues one RTCP datagram that `fill` writes.
    ///
    /// Unless the peer agreed to reduced-size RTCP, a receiver report and the CNAME come first (RFC
    /// 3550 §6.1); feedback alone would be discarded.
    mutating func sendRTCP(
        from transport: Int,
        startsWithReport: Bool = false,
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
        statistics.rtcpOut &+= 1
        statistics.datagramsOut &+= 1
        statistics.bytesOut &+= UInt64(total)
        transports.destinations[transport].count(length: total)
    }

    /// Sends the periodic reports: one for each stream sent and each received.
    mutating func sendReports(from transport: Int, at now: Instant, into output: inout Batch) {
        var reports = UncountedArray<ReceptionReport>(capacity: 8)
        collectReceptions(of: transport, at: now, into: &reports)
        var senders = UncountedArray<SenderReport>(capacity: 8)
        collectSenders(of: transport, at: now, into: &senders)
        guard !reports.isEmpty || !senders.isEmpty else { return }
        let ssrc = transports[transport].ssrc
        let estimate = transports[transport].sendsREMB ? transports[transport].estimate.bitrate : 0
        let sources = mediaSources(of: transport)
        var position = 0
        repeat {
            let end = min(position + Self.reportsPerDatagram, senders.count)
            let isFirst = position == 0
            let cname = transports[transport].cname
            sendRTCP(from: transport, startsWithReport: true, into: &output) { bytes in
                for index in position..<end { senders[index].encode(into: &bytes) }
                if isFirst || senders.isEmpty {
                    ReceiverReport.encode(sender: ssrc, reports: reports.span, into: &bytes)
                }
                SourceDescription.encode(ssrc: ssrc, cname: cname.span, into: &bytes)
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

    private mutating func collectReceptions(
        of transport: Int,
        at now: Instant,
        into reports: inout UncountedArray<ReceptionReport>
    ) {
        for index in 0..<transports[transport].publications.count {
            let publication = Int(transports[transport].publications[index])
            for position in 0..<publications[publication].encodings.count {
                let encoding = Int(publications[publication].encodings[position])
                guard reports.count < ReceiverReport.maximumReports,
                    let ssrc = encodings[encoding].ssrc,
                    encodings[encoding].rate.isActive(within: 10_000, at: now)
                else { continue }
                reports.append(encodings[encoding].reception.report(ssrc: ssrc, at: now))
            }
        }
    }

    /// Returns the media SSRCs that a bandwidth estimate (REMB) names, 16 at most.
    private func mediaSources(of transport: Int) -> UncountedArray<SSRC> {
        var sources = UncountedArray<SSRC>(capacity: 4)
        for index in 0..<transports[transport].streams.count
        where !transports[transport].streams[index].isRetransmission {
            if sources.count < 16 { sources.append(transports[transport].streams[index].ssrc) }
        }
        return sources
    }

    private mutating func collectSenders(
        of transport: Int,
        at now: Instant,
        into senders: inout UncountedArray<SenderReport>
    ) {
        for index in 0..<transports[transport].slots.count {
            let slot = Int(transports[transport].slots[index])
            guard let report = senderReport(of: slot, at: now) else { continue }
            senders.append(report)
        }
    }

    /// Returns a sender report that maps the slot's RTP timestamps to the server's clock, for lip
    /// sync.
    ///
    /// Before the publisher's first report the mapping is unknown, and a guess would make playback
    /// jump.
    private func senderReport(of slot: Int, at now: Instant) -> SenderReport? {
        guard slots[slot].isOpen, slots[slot].rewriter.hasStarted else { return nil }
        let span = slots[slot].rewriter.current
        let encoding = Int(span.encoding)
        guard encodings.isOccupied(encoding), encodings[encoding].epoch == span.epoch,
            let captured = encodings[encoding].captured
        else { return nil }
        let passed = now.nanoseconds(since: captured.instant)
        guard abs(passed) < 60_000_000_000 else { return nil }
        let ticks = passed / 1_000 &* Int64(encodings[encoding].clockRate) / 1_000_000
        let timestamp =
            captured.timestamp
            &+ UInt32(truncatingIfNeeded: ticks) &+ span.timestampOffset
        return SenderReport(
            sender: slots[slot].ssrc,
            ntp: ntp(at: now),
            rtpTimestamp: timestamp,
            packets: UInt32(truncatingIfNeeded: slots[slot].packets),
            octets: slots[slot].octets
        )
    }
}
