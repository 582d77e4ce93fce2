internal import RTP

/// Decides when one encoding's publisher is asked for a keyframe.
///
/// All wishes go through here: those that come while a request is under way share its answer,
/// and a publisher hears at most one request in `intervalMilliseconds`.
enum KeyframeRequests: BitwiseCopyable {
    /// Nobody waits.
    case satisfied(lastAsked: Instant?)
    /// Somebody waits, and the publisher will be asked at this time.
    case wanted(askAt: Instant, tries: Int)

    static let intervalMilliseconds: Int64 = 400
    /// An encoder that does not answer is asked ever less often.
    static let maximumBackoff = 4

    /// Somebody needs a keyframe.
    mutating func want(at now: Instant) {
        switch self {
        case .satisfied(let lastAsked):
            let earliest = lastAsked?.advanced(milliseconds: Self.intervalMilliseconds) ?? now
            self = .wanted(askAt: max(now, earliest), tries: 0)
        case .wanted:
            break
        }
    }

    /// A keyframe began to arrive: all who waited are served.
    mutating func keyframeCame() {
        switch self {
        case .satisfied: break
        case .wanted(let askAt, let tries):
            let interval = Self.intervalMilliseconds << Int64(max(0, tries - 1))
            self = .satisfied(
                lastAsked: tries > 0 ? askAt.advanced(milliseconds: -interval) : nil)
        }
    }

    /// Nobody waits any more.
    mutating func cancel() {
        switch self {
        case .satisfied: break
        case .wanted: keyframeCame()
        }
    }

    var deadline: Instant? {
        switch self {
        case .satisfied: nil
        case .wanted(let askAt, _): askAt
        }
    }

    /// Whether to ask now; if so, the next time is set.
    mutating func isDue(at now: Instant) -> Bool {
        switch self {
        case .satisfied:
            return false
        case .wanted(let askAt, let tries):
            guard askAt <= now else { return false }
            let next = min(tries + 1, Self.maximumBackoff)
            let interval = Self.intervalMilliseconds << Int64(next - 1)
            self = .wanted(askAt: now.advanced(milliseconds: interval), tries: next)
            return true
        }
    }
}
