import RTP
import WorkerInterface

/// Timer processing of transports.
extension Core {
    mutating func expire(transport: Int, at now: Instant, into output: inout Batch) {
        guard !transports[transport].hasEnded else { return }
        if transports[transport].dtls?.deadline.isDue(at: now) == true {
            transports.expireDTLS(transport, at: now, into: &output)
        }
        transports.checkLiveness(of: transport, at: now, into: &output)
        if transports[transport].speechDue.isDue(at: now) { expireSpeech(of: transport, at: now) }
        if transports[transport].consentDue.isDue(at: now) {
            transports.expireConsent(of: transport, at: now, into: &output)
        }
        routeFindings(at: now)
        guard transports[transport].canSend else { return }
        if transports[transport].feedbackDue.isDue(at: now) {
            sendTransportFeedback(from: transport, at: now, into: &output)
        }
        if transports[transport].nackDue.isDue(at: now) {
            sendNACKs(from: transport, at: now, into: &output)
        }
        if transports[transport].bandwidth?.deadline(at: now).isDue(at: now) == true {
            expireBandwidth(of: transport, at: now, into: &output)
        }
        if transports[transport].allocationDue.isDue(at: now) { allocate(transport, at: now) }
        if transports[transport].layersDue.isDue(at: now) {
            reviewLayers(of: transport, at: now)
        }
        if transports[transport].keyframeDue.isDue(at: now) {
            sendKeyframeRequests(from: transport, at: now, into: &output)
        }
        if transports[transport].reportDue.isDue(at: now) {
            transports[transport].estimate.update(at: now)
            sendReports(from: transport, at: now, into: &output)
            trimHistories(of: transport, at: now)
            transports[transport].reportDue = Transports.nextReport(after: now)
        }
    }

    /// Removes stored packets that are too old to be requested, also for publishers that have
    /// stopped sending.
    private mutating func trimHistories(of transport: Int, at now: Instant) {
        for index in 0..<transports[transport].publications.count {
            let publication = Int(transports[transport].publications[index])
            for position in 0..<publications[publication].encodings.count {
                let encoding = Int(publications[publication].encodings[position])
                encodings[encoding].history.trim(at: now, pool: &pool)
                if encodings[encoding].kind == .audio { encodings[encoding].rate.measure(at: now) }
            }
        }
    }
}
