internal import RTP

/// Decides when one encoding's publisher is asked for a keyframe.
///
/// All wishes go through here: those that come while a request is under way share its answer,
/// and a publisher hears at most one request in `intervalMilliseconds`.
struct KeyframeRequests: BitwiseCopyable {
    private enum State: BitwiseCopyable {
        /// Nobody waits.
        case satisfied
        /// Somebody waits; the publisher is asked at this time, having been asked so often.
        case wanted(askAt: Instant, tries: Int64)
    }

    static let intervalMilliseconds: Int64 = 400
    /// An encoder that does not answer is asked ever less often.
    static let maximumBackoff: Int64 = 4

    private var state = State.satisfied
    private var lastAsked: Instant?

    var isWanted: Bool {
        switch state {
        case .satisfied: false
        case .wanted: true
        }
    }

    /// When to ask next, if somebody waits.
    var deadline: Instant? {
        switch state {
        case .satisfied: nil
        case .wanted(let askAt, _): askAt
        }
    }

    /// Somebody needs a keyframe.
    mutating func want(at now: Instant) {
        guard !isWanted else { return }
        let earliest = lastAsked?.advanced(milliseconds: Self.intervalMilliseconds) ?? now
        state = .wanted(askAt: max(now, earliest), tries: 0)
    }

    /// A keyframe began to arrive, or nobody waits any more.
    mutating func satisfy() { state = .satisfied }

    /// Whether to ask now; if so, the next time is set.
    mutating func isDue(at now: Instant) -> Bool {
        guard case .wanted(let askAt, let tries) = state, askAt <= now else { return false }
        let backoff = min(tries, Self.maximumBackoff)
        let again = now.advanced(milliseconds: Self.intervalMilliseconds << backoff)
        state = .wanted(askAt: again, tries: tries + 1)
        lastAsked = now
        return true
    }
}
