import RTP
import WorkerInterface

/// Keyframe requests of subscribers, on their way to the publisher.
extension Receiver {
    /// Requests a keyframe of this encoding for a subscriber, not earlier than `notBefore`.
    mutating func requestKeyframe(
        of encoding: EncodingIndex,
        at now: Instant,
        notBefore: Instant? = nil,
        _ transports: inout Transports
    ) {
        let bitrate = encodings[encoding].rate.bitrate
        let outcome = encodings[encoding].keyframes
            .want(at: now, bitrate: bitrate, notBefore: notBefore ?? now)
        counters.keyframeRequestCounts.count(outcome)
        scheduleKeyframe(of: encoding, at: now, &transports)
    }

    /// Requests a keyframe for a subscriber that has a picture of a lower layer already.
    ///
    /// Such requests share one keyframe in `KeyframeRequests.climbMilliseconds`, counted from the
    /// last request for any encoding of the publication: a publisher makes keyframes of all.
    mutating func requestKeyframe(
        toClimbTo encoding: EncodingIndex,
        at now: Instant,
        _ transports: inout Transports
    ) {
        let publication = encodings[encoding].publication
        var last: Instant?
        for position in 0..<publications[publication].encodings.count {
            let other = publications[publication].encodings[position]
            guard let asked = encodings[other].keyframes.lastAsked else { continue }
            last = max(last ?? asked, asked)
        }
        let bitrate = encodings[encoding].rate.bitrate
        let outcome = encodings[encoding].keyframes.wantClimb(
            at: now,
            bitrate: bitrate,
            notBefore: last?.advanced(milliseconds: KeyframeRequests.climbMilliseconds) ?? now
        )
        counters.keyframeRequestCounts.count(outcome)
        scheduleKeyframe(of: encoding, at: now, &transports)
    }

    /// Schedules the keyframe request to the publisher, or to the origin worker of a mirrored
    /// publication.
    mutating func scheduleKeyframe(
        of encoding: EncodingIndex,
        at now: Instant,
        _ transports: inout Transports
    ) {
        guard let due = encodings[encoding].keyframes.deadline else { return }
        guard let transport = publications[encodings[encoding].publication].transport else {
            return scheduleMirrors(by: due)
        }
        if transports[transport].keyframeDue.map({ $0 > due }) ?? true {
            transports[transport].keyframeDue = due
            transports.schedule(transport, at: now)
        }
    }

    /// Requests a keyframe after unrepairable loss, which breaks the video of all subscribers.
    mutating func requestKeyframeAfterLoss(
        of encoding: EncodingIndex,
        _ now: Instant,
        _ transports: inout Transports
    ) {
        let publication = encodings[encoding].publication
        guard encodings[encoding].kind == .video, publications[publication].hasViewers else {
            return
        }
        requestKeyframe(of: encoding, at: now, &transports)
    }

    /// Requests a keyframe of the highest live encoding, for subscribers on other workers whose
    /// layer is unknown here.
    mutating func requestKeyframe(
        ofHighest publication: PublicationIndex,
        at now: Instant,
        _ transports: inout Transports
    ) {
        guard publications[publication].isOpen, let highest = highestLive(of: publication)
        else { return }
        requestKeyframe(of: highest, at: now, &transports)
    }

    /// Lets a video packet answer the keyframe requests that its encoding has pending.
    mutating func answerKeyframeRequests(
        with info: PacketInfo,
        _ layers: LayerNews,
        encoding: EncodingIndex,
        at now: Instant,
        _ transports: inout Transports
    ) {
        guard encodings[encoding].kind.isVideo, !info.flags.contains(.skipped) else { return }
        if layers.resumesEncoding {
            encodings[encoding].keyframes.hear(at: info.arrival)
            scheduleKeyframe(of: encoding, at: now, &transports)
        }
        let length = Int(info.payloadOffset) + Int(info.payloadLength)
        encodings[encoding].keyframes.receive(info, bytes: length)
        if info.flags.contains(.keyframeStart) { encodings[encoding].watch.noteKeyframe() }
        scheduleReview(of: encodings[encoding].publication, at: info.arrival, &transports)
    }

    /// Time of the next review or keyframe request of the mirrors, at the latest.
    mutating func scheduleMirrors(by due: Instant) {
        mirrorsDue = min(mirrorsDue ?? due, due)
    }
}
