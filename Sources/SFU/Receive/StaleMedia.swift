import RTP
import WorkerInterface

/// Received media to discard because it is stale.
package enum StaleMedia: UInt8, BitwiseCopyable {
    case nothing
    /// Video of publications with many subscribers, which costs the most work.
    case largeAudienceVideo
    case video
    case everything
}

extension Receiver {
    func isStaleMedia(_ publication: PublicationIndex) -> Bool {
        switch staleMedia {
        case .nothing: false
        case .largeAudienceVideo:
            publications[publication].kind.isVideo && publications[publication].hasLargeAudience
        case .video: publications[publication].kind.isVideo
        case .everything: true
        }
    }

    /// Records that a packet was discarded as stale, so that the next one does not continue the
    /// stream.
    mutating func discardStale(_ encoding: EncodingIndex) {
        encodings[encoding].losses.removeAll()
        encodings[encoding].isBroken = true
    }

    /// Resumes the stream after an unrepairable gap: it gets a new epoch, which closes the gap in
    /// outgoing sequence numbers, and a keyframe is requested.
    mutating func resumeAfterGap(
        _ encoding: EncodingIndex,
        at now: Instant,
        _ transports: inout Transports
    ) {
        encodings[encoding].isBroken = false
        encodings[encoding].epoch = takeEpoch()
        encodings[encoding].losses.removeAll()
        encodings[encoding].history.removeAll(from: &pool)
        if let transport = publications[encodings[encoding].publication].transport {
            saveBindings(of: transport, &transports)
        }
        requestKeyframeAfterLoss(of: encoding, now, &transports)
    }
}
