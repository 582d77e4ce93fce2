import RTP
import WorkerInterface

/// Feedback to publishers: NACKs, keyframe requests, transport-wide feedback.
extension Core {
    /// Sends transport-wide feedback with the arrival times of the publisher's packets.
    mutating func sendTransportFeedback(
        from transport: Int,
        at now: Instant,
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
        sendRTCP(from: transport, into: &output) { bytes in
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
    mutating func sendNACKs(from transport: Int, at now: Instant, into output: inout Batch) {
        var next: Instant?
        for index in 0..<transports[transport].publications.count {
            let publication = Int(transports[transport].publications[index])
            for position in 0..<publications[publication].encodings.count {
                let encoding = Int(publications[publication].encodings[position])
                sendNACK(for: encoding, from: transport, at: now, into: &output)
                guard let deadline = encodings[encoding].losses.deadline else { continue }
                next = min(next ?? deadline, deadline)
            }
        }
        transports[transport].nackDue = next
    }

    private mutating func sendNACK(
        for encoding: Int,
        from transport: Int,
        at now: Instant,
        into output: inout Batch
    ) {
        guard !encodings[encoding].losses.isEmpty, let media = encodings[encoding].ssrc else {
            return
        }
        let abandoned = encodings[encoding].losses.abandoned
        var lost = UncountedArray<SequenceNumber>(capacity: 32)
        encodings[encoding].losses.collect(
            dueAt: now,
            retryMilliseconds: transports[transport].nackRetryMilliseconds,
            into: &lost
        )
        if encodings[encoding].losses.abandoned != abandoned {
            requestKeyframeAfterLoss(of: encoding, now)
        }
        guard !lost.isEmpty else { return }
        encodings[encoding].nacksSent &+= 1
        let ssrc = transports[transport].ssrc
        sendRTCP(from: transport, into: &output) { bytes in
            GenericNACK.encode(sender: ssrc, media: media, lost: lost.span, into: &bytes)
        }
    }

    /// Requests a keyframe after unrepairable loss, which breaks the video of all subscribers.
    mutating func requestKeyframeAfterLoss(of encoding: Int, _ now: Instant) {
        let publication = encodings[encoding].publication
        guard encodings[encoding].kind == .video, publications[publication].hasViewers else {
            return
        }
        requestKeyframe(of: encoding, at: now)
    }

    /// Sends the keyframe requests that are due.
    mutating func sendKeyframeRequests(
        from transport: Int,
        at now: Instant,
        into output: inout Batch
    ) {
        var next: Instant?
        for index in 0..<transports[transport].publications.count {
            let publication = Int(transports[transport].publications[index])
            for position in 0..<publications[publication].encodings.count {
                let encoding = Int(publications[publication].encodings[position])
                if !publications[publication].hasViewers {
                    encodings[encoding].keyframes.satisfy()
                }
                if encodings[encoding].keyframes.isDue(at: now) {
                    sendKeyframeRequest(for: encoding, from: transport, into: &output)
                }
                guard let deadline = encodings[encoding].keyframes.deadline else { continue }
                next = min(next ?? deadline, deadline)
            }
        }
        transports[transport].keyframeDue = next
    }

    private mutating func sendKeyframeRequest(
        for encoding: Int,
        from transport: Int,
        into output: inout Batch
    ) {
        let publication = encodings[encoding].publication
        guard let media = encodings[encoding].ssrc, publications[publication].isOpen else {
            return
        }
        let feedback =
            (encodings[encoding].mapping ?? publications[publication].formats.first)?
            .feedback ?? []
        encodings[encoding].pictureLossesSent &+= 1
        let number = UInt8(truncatingIfNeeded: encodings[encoding].pictureLossesSent)
        let ssrc = transports[transport].ssrc
        let usesFIR = !feedback.contains(.pictureLoss) && feedback.contains(.fullIntraRequest)
        sendRTCP(from: transport, into: &output) { bytes in
            if usesFIR {
                let entry = FullIntraRequest.Entry(media: media, number: number)
                FullIntraRequest.encode(sender: ssrc, entry: entry, into: &bytes)
            } else {
                PictureLossIndication(sender: ssrc, media: media).encode(into: &bytes)
            }
        }
    }
}
