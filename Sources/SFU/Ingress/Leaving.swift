import RTP
import WorkerInterface

/// Received media to discard because it is stale.
package enum Leaving: UInt8, BitwiseCopyable {
    case nothing
    /// Video of publications with many subscribers, which costs the most work.
    case crowdsVideo
    case video
    case everything
}

extension Core {
    func isLeftOut(_ publication: Int) -> Bool {
        switch leaving {
        case .nothing: false
        case .crowdsVideo:
            publications[publication].kind == .video && publications[publication].hasManyViewers
        case .video: publications[publication].kind == .video
        case .everything: true
        }
    }

    /// Records that a packet was discarded as stale, so that the next one does not continue the
    /// stream.
    mutating func leaveOut(_ encoding: Int) {
        encodings[encoding].losses.removeAll()
        encodings[encoding].isBroken = true
    }

    /// Resumes the stream after an unrepairable gap: it gets a new epoch, which closes the gap in
    /// outgoing sequence numbers, and a keyframe is requested.
    mutating func goOn(_ encoding: Int, at now: Instant) {
        encodings[encoding].isBroken = false
        encodings[encoding].epoch = takeEpoch()
        encodings[encoding].losses.removeAll()
        encodings[encoding].history.removeAll(from: &pool)
        refreshAfterLoss(of: encoding, now)
    }
}
