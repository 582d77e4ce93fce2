import RTP
import WorkerInterface

/// Freeze that has not ended, with its time by reason.
///
/// The verdict is the hop that accounts for most of the time, and of its reasons the largest.
struct OngoingFreeze: BitwiseCopyable {
    let began: Instant
    /// Time up to which it is accounted for.
    private(set) var accounted: Instant
    /// Nanoseconds by reason.
    private var times = [16 of Int64](repeating: 0)
    /// Nanoseconds in which nothing arrived from the encoding, with the reason still open.
    private var silent: Int64 = 0
    private var silentFrom: Instant?
    /// Whether other packets of the publisher arrived meanwhile.
    private var isHeard = false
    /// Longest gap between acknowledged frames, in nanoseconds.
    private(set) var gap: Int64 = 0
    /// Whether only missing acknowledgements tell of it.
    private(set) var isUnconfirmed = true
    /// Reason of the last stretch.
    private(set) var last: FreezeReason?
    /// Packets missing or keyframes requested, at most.
    private var missing: Int32 = 0
    private var requests: Int32 = 0

    init(began: Instant) {
        self.began = began
        accounted = began
    }

    /// Notes a gap between acknowledged frames, in nanoseconds.
    mutating func note(gap other: Int64) { gap = max(gap, other) }

    /// Notes the number of packets that are missing, and of keyframes requested.
    mutating func note(missing packets: Int32, requests number: Int32) {
        missing = max(missing, packets)
        requests = max(requests, number)
    }

    /// Attributes the time up to `now` to a reason.
    mutating func add(_ reason: FreezeReason, until now: Instant) {
        guard now > accounted else { return }
        times[Int(reason.rawValue)] &+= now.nanoseconds(since: accounted)
        accounted = now
        last = reason
        if reason != .unacknowledged { isUnconfirmed = false }
    }

    /// Attributes the time up to `now` to a silence of the encoding.
    mutating func addSilence(isHeard: Bool, until now: Instant) {
        guard now > accounted else { return }
        if silentFrom == nil { silentFrom = accounted }
        silent &+= now.nanoseconds(since: accounted)
        accounted = now
        self.isHeard = isHeard
        isUnconfirmed = false
    }

    /// Settles the reason of a silence that has ended.
    mutating func settle(_ silence: FreezeEvidence.Silence?) {
        guard silent > 0, let silence, let from = silentFrom, silence.to > from else { return }
        times[Int(silence.reason.rawValue)] &+= silent
        last = silence.reason
        silent = 0
        silentFrom = nil
    }

    /// Reason of the silence as long as it lasts.
    private var provisional: FreezeReason { isHeard ? .noFrame : .publisherSilent }

    /// Reason that accounts for most of the time of the hop that accounts for most.
    var verdict: FreezeReason {
        var times = times
        times[Int(provisional.rawValue)] &+= silent
        var hops = [5 of Int64](repeating: 0)
        for reason in FreezeReason.allCases {
            hops[Int(reason.hop.rawValue)] &+= times[Int(reason.rawValue)]
        }
        var best = FreezeReason.unacknowledged
        for reason in FreezeReason.allCases {
            let (hop, other) = (Int(reason.hop.rawValue), Int(best.hop.rawValue))
            let isLonger = times[Int(reason.rawValue)] > times[Int(best.rawValue)]
            if hops[hop] > hops[other] || hop == other && isLonger { best = reason }
        }
        return best
    }

    /// Returns the freeze as it is reported.
    func report(until end: Instant, hasEnded: Bool) -> Freeze {
        let reason = verdict
        let figure: Int32 =
            switch reason {
            case .packetsMissing: missing
            case .undecoded: requests
            case .packetsLate, .publisherSilent, .noFrame, .noKeyframe, .shed, .stalled, .paced,
                .discarded, .switching, .tooNarrow, .steppingDown, .unacknowledged, .arrivedLate,
                .repairing:
                0
            }
        return Freeze(
            began: began,
            nanoseconds: max(0, end.nanoseconds(since: began)),
            reason: reason,
            figure: figure,
            hasEnded: hasEnded
        )
    }
}
