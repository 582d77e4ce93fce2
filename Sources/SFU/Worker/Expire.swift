import RTP
import WorkerInterface

/// Timer processing of transports.
extension Core {
    mutating func expire(transport: TransportIndex, at now: Instant, into output: inout Batch) {
        guard !transports[transport].hasEnded else { return }
        defer { collectEvents() }
        if transports[transport].dtls?.deadline.isDue(at: now) == true {
            transports.expireDTLS(transport, at: now, into: &output)
        }
        transports.checkLiveness(of: transport, at: now, into: &output)
        if transports[transport].speechDue.isDue(at: now) {
            receiver.expireSpeech(of: transport, at: now, &transports)
        }
        if transports[transport].consentDue.isDue(at: now) {
            transports.expireConsent(of: transport, at: now, into: &output)
        }
        if transports[transport].freezeDue.isDue(at: now) {
            watchFreezes(of: transport, at: now)
        }
        routeFindings(at: now)
        guard transports[transport].canSend else { return }
        if transports[transport].feedbackDue.isDue(at: now) {
            rtcp.sendTransportFeedback(
                from: transport,
                at: now,
                &transports,
                forwarder,
                into: &output
            )
        }
        if transports[transport].nackDue.isDue(at: now) {
            rtcp.sendNACKs(
                from: transport,
                at: now,
                &transports,
                &receiver,
                forwarder,
                into: &output
            )
        }
        if transports[transport].bandwidth?.deadline(at: now).isDue(at: now) == true {
            forwarder.expireBandwidth(of: transport, at: now, &transports, &receiver, into: &output)
        }
        if transports[transport].allocationDue.isDue(at: now) {
            allocator.allocate(transport, at: now, &transports, &receiver, &forwarder)
        }
        if transports[transport].layersDue.isDue(at: now) {
            allocator.reviewLayers(of: transport, at: now, &transports, &receiver, &forwarder)
        }
        if transports[transport].keyframeDue.isDue(at: now) {
            rtcp.sendKeyframeRequests(
                from: transport,
                at: now,
                &transports,
                &receiver,
                forwarder,
                into: &output
            )
        }
        if transports[transport].reportDue.isDue(at: now) {
            transports[transport].estimate.update(at: now)
            rtcp.sendReports(
                from: transport,
                at: now,
                &transports,
                &receiver,
                &forwarder,
                into: &output
            )
            receiver.trimHistories(of: transport, at: now, transports)
            transports[transport].reportDue = Transports.nextReport(after: now)
        }
    }
}
