import RTP
import WorkerInterface

/// The way of an RTP packet into the batch.
extension Core {
    /// Takes one RTP packet through all steps until it waits in the batch, which `flush` forwards.
    ///
    /// A step that refuses the packet throws the reason, with which it is counted.
    mutating func receiveRTP(
        _ bytes: Span<UInt8>,
        on path: Path,
        at now: Instant,
        into output: inout Batch
    ) {
        var packet: ReceivedPacket
        do throws(DropReason) {
            let transport = try receiver.findTransport(of: bytes, on: path, at: now, &transports)
            packet = try receiver.decrypt(bytes, from: transport, at: now, &transports)
        } catch {
            return receiver.drops.count(error)
        }
        transports.heard(from: packet.transport, at: now)
        transports.noteAuthenticatedPacket(packet.transport, on: path, at: now, into: &output)
        routeFindings(at: now)
        do throws(DropReason) {
            try receiver.parseHeader(of: &packet, &transports)
            try receiver.bindStream(of: &packet, &transports)
            try receiver.restoreOriginal(of: &packet)
            try receiver.recordArrival(of: &packet, &transports)
            try receiver.checkGate(of: &packet, &transports)
            try receiver.limitRate(of: &packet, &transports)
            try receiver.inspectPayload(of: &packet)
            receiver.detectSpeech(in: packet, &transports)
            if packet.layers.mayChangeOffers {
                allocator.noteNews(
                    of: packet.publication,
                    at: now,
                    &transports,
                    &receiver,
                    &forwarder
                )
            }
            receiver.answerKeyframeRequests(
                with: packet.info,
                packet.layers,
                encoding: packet.encoding,
                at: now,
                &transports
            )
            receiver.keep(
                packet.info,
                place: packet.place,
                encoding: packet.encoding,
                publication: packet.publication
            )
        } catch {
            if packet.breaksPicture { forwarder.holdViewers(of: packet.encoding, &receiver) }
            receiver.discard(packet, because: error)
        }
    }
}
