import RTP
import WorkerInterface

/// Feedback to publishers: NACKs, keyframe requests, transport-wide feedback.
extension RTCPEndpoint {
    /// Sends transport-wide feedback with the arrival times of the publisher's packets.
    mutating func sendTransportFeedback(
        from transport: TransportIndex,
        at now: Instant,
        _ transports: inout Transports,
        _ forwarder: borrowing Forwarder,
        into output: inout Batch
    ) {
        transports[transport].feedbackDue = nil
        var times = UncountedArray<Int64>(capacity: 128)
        transports[transport].arrivals?.copy(into: &times)
        guard !times.isEmpty, let first = transports[transport].streams.first else {
            return
        }
        let base = transports[transport].arrivals?.baseNumber ?? SequenceNumber(rawValue: 0)
        let number = transports[transport].arrivals?.feedbackCount ?? 0
        let ssrc = transports[transport].ssrc
        var reported = 0
        sendRTCP(from: transport, &transports, forwarder, into: &output) { bytes in
            reported = TransportFeedbackBuilder.encode(
                sender: ssrc,
                media: first.ssrc,
                feedbackCount: number,
                base: base,
                arrivals: times.span,
                into: &bytes
            )
        }
        transports[transport].arrivals?.reported(max(reported, 1))
        if transports[transport].arrivals?.isEmpty == false {
            transports[transport].feedbackDue = now
        }
    }

    /// Sends NACKs for missing packets to a publisher (RFC 4585 §6.2.1).
    mutating func sendNACKs(
        from transport: TransportIndex,
        at now: Instant,
        _ transports: inout Transports,
        _ receiver: inout Receiver,
        _ forwarder: borrowing Forwarder,
        into output: inout Batch
    ) {
        var next: Instant?
        for index in 0..<transports[transport].publications.count {
            let publication = transports[transport].publications[index]
            for position in 0..<receiver.publications[publication].encodings.count {
                let encoding = receiver.publications[publication].encodings[position]
                sendNACK(
                    for: encoding,
                    from: transport,
                    at: now,
                    &transports,
                    &receiver,
                    forwarder,
                    into: &output
                )
                guard let deadline = receiver.encodings[encoding].losses.deadline else { continue }
                next = min(next ?? deadline, deadline)
            }
        }
        transports[transport].nackDue = next
    }

    private mutating func sendNACK(
        for encoding: EncodingIndex,
        from transport: TransportIndex,
        at now: Instant,
        _ transports: inout Transports,
        _ receiver: inout Receiver,
        _ forwarder: borrowing Forwarder,
        into output: inout Batch
    ) {
        guard !receiver.encodings[encoding].losses.isEmpty,
            let media = receiver.encodings[encoding].ssrc
        else {
            return
        }
        let abandoned = receiver.encodings[encoding].losses.abandoned
        var lost = UncountedArray<SequenceNumber>(capacity: 32)
        receiver.encodings[encoding].losses.collect(
            dueAt: now,
            retryMilliseconds: transports[transport].nackRetryMilliseconds,
            into: &lost
        )
        if receiver.encodings[encoding].losses.abandoned != abandoned {
            receiver.requestKeyframeAfterLoss(of: encoding, now, &transports)
        }
        guard !lost.isEmpty else { return }
        receiver.encodings[encoding].nacksSent &+= 1
        let ssrc = transports[transport].ssrc
        sendRTCP(from: transport, &transports, forwarder, into: &output) { bytes in
            GenericNACK.encode(sender: ssrc, media: media, lost: lost.span, into: &bytes)
        }
    }

    /// Sends the keyframe requests that are due.
    mutating func sendKeyframeRequests(
        from transport: TransportIndex,
        at now: Instant,
        _ transports: inout Transports,
        _ receiver: inout Receiver,
        _ forwarder: borrowing Forwarder,
        into output: inout Batch
    ) {
        var next: Instant?
        for index in 0..<transports[transport].publications.count {
            let publication = transports[transport].publications[index]
            for position in 0..<receiver.publications[publication].encodings.count {
                let encoding = receiver.publications[publication].encodings[position]
                if !receiver.publications[publication].hasViewers {
                    receiver.encodings[encoding].keyframes.satisfy()
                }
                if receiver.encodings[encoding].keyframes.isDue(at: now) {
                    sendKeyframeRequest(
                        for: encoding,
                        from: transport,
                        &transports,
                        &receiver,
                        forwarder,
                        into: &output
                    )
                }
                guard let deadline = receiver.encodings[encoding].keyframes.deadline else {
                    continue
                }
                next = min(next ?? deadline, deadline)
            }
        }
        transports[transport].keyframeDue = next
    }

    private mutating func sendKeyframeRequest(
        for encoding: EncodingIndex,
        from transport: TransportIndex,
        _ transports: inout Transports,
        _ receiver: inout Receiver,
        _ forwarder: borrowing Forwarder,
        into output: inout Batch
    ) {
        let publication = receiver.encodings[encoding].publication
        guard let media = receiver.encodings[encoding].ssrc,
            receiver.publications[publication].isOpen
        else {
            return
        }
        let feedback =
            (receiver.encodings[encoding].mapping
            ?? receiver.publications[publication].formats.first)?
            .feedback ?? []
        receiver.encodings[encoding].pictureLossesSent &+= 1
        let number = UInt8(truncatingIfNeeded: receiver.encodings[encoding].pictureLossesSent)
        let ssrc = transports[transport].ssrc
        let usesFIR = !feedback.contains(.pictureLoss) && feedback.contains(.fullIntraRequest)
        sendRTCP(from: transport, &transports, forwarder, into: &output) { bytes in
            if usesFIR {
                let entry = FullIntraRequest.Entry(media: media, number: number)
                FullIntraRequest.encode(sender: ssrc, entry: entry, into: &bytes)
            } else {
                PictureLossIndication(sender: ssrc, media: media).encode(into: &bytes)
            }
        }
    }
}
