import Contract
import RTP
import WorkerInterface

// Freezes, as the contract tells of them.

extension SubscriptionFreezes {
    init(_ account: FreezeAccount, unixTime: (Instant) -> Double) {
        self.init()
        count = Int(clamping: account.totals.all.count)
        seconds = rounded(account.totals.all.seconds)
        hops = HopFreezes.list(account.totals)
        recent = account.recent.map { FreezeInfo($0, unixTime: unixTime) }
    }
}

extension HopFreezes {
    /// Lists the hops that have freezes.
    static func list(_ totals: FreezeTotals) -> [Self] {
        FreezeHop.allCases.compactMap { hop in
            let sum = totals[hop]
            guard sum.count > 0 else { return nil }
            return Self(
                hop: FreezeHopName(hop),
                count: Int(clamping: sum.count),
                seconds: rounded(sum.seconds)
            )
        }
    }
}

extension FreezeHopName {
    init(_ hop: FreezeHop) {
        self =
            switch hop {
            case .publisherUplink: .publisherUplink
            case .publisherEncoder: .publisherEncoder
            case .sfu: .sfu
            case .viewerDownlink: .viewerDownlink
            case .viewerDecoder: .viewerDecoder
            }
    }
}

extension FreezeInfo {
    fileprivate init(_ freeze: Freeze, unixTime: (Instant) -> Double) {
        self.init(
            time: rounded(unixTime(freeze.began)),
            seconds: rounded(Double(freeze.nanoseconds) / 1e9),
            hop: FreezeHopName(freeze.reason.hop),
            reason: freeze.reason.text(freeze.figure),
            ongoing: !freeze.hasEnded
        )
    }
}

extension FreezeReason {
    /// Describes the evidence in a line; `figure` is the number of packets or requests.
    func text(_ figure: Int32) -> String {
        switch self {
        case .packetsMissing: "packets from the publisher were lost (\(figure) missing)"
        case .packetsLate: "the publisher's packets arrived late and in a burst"
        case .publisherSilent: "nothing arrived from the publisher"
        case .noFrame: "the publisher sent no frame, and no packet of it is missing"
        case .noKeyframe: "the publisher did not answer a keyframe request in time"
        case .shed: "the overloaded worker stopped the video"
        case .stalled: "the worker did not run"
        case .paced: "packets waited in the pacer"
        case .discarded: "packets arrived from the publisher and were not forwarded"
        case .switching: "a layer switch waited for its keyframe"
        case .tooNarrow: "the viewer's path carries less than the lowest layer"
        case .steppingDown: "the viewer's path was full, and a lower layer waited for its keyframe"
        case .unacknowledged: "the viewer acknowledged none of the frames sent"
        case .arrivedLate: "frames arrived late at the viewer"
        case .repairing: "the viewer kept asking for packets lost on the way to it"
        case .undecoded:
            "everything arrived at the viewer, and it asked for \(figure) keyframes"
        }
    }
}

/// Rounds to a thousandth.
private func rounded(_ value: Double) -> Double { (value * 1_000).rounded() / 1_000 }
