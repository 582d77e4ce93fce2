import RTP
import WorkerInterface

/// Which media goes to nobody, as it has waited too long to be received.
package enum Leaving: UInt8, BitwiseCopyable {
    case nothing
    /// Video with many viewers: what makes the most work for what is too late.
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

    /// Takes note that a packet is left out: what comes next does not follow it.
    mutating func leaveOut(_ encoding: Int) {
        encodings[encoding].losses.removeAll()
        encodings[encoding].isBroken = true
    }

    /// After a hole that nothing fills: the numbers close over it, and a picture begins anew.
    mutating func goOn(_ encoding: Int, at now: Instant) {
        encodings[encoding].isBroken = false
        encodings[encoding].epoch = takeEpoch()
        encodings[encoding].losses.removeAll()
        encodings[encoding].history.removeAll(from: &pool)
        refreshAfterLoss(of: encoding, now)
    }
}
