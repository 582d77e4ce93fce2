import RTP
import WorkerInterface

/// Decides when one encoding's publisher is asked for a keyframe.
///
/// All wishes go through here: those that come while a request is under way share its answer,
/// those that come in a rush wait for each other, and keyframes take a bounded share of the bits.
struct KeyframeRequests: BitwiseCopyable {
    /// What a wish came to.
    enum Outcome: BitwiseCopyable {
        /// The publisher is asked now.
        case asked
        /// A request is under way or due: its answer serves this wish too.
        case shared
        /// The last request is too fresh.
        case held
        /// Keyframes have had their share of the bits.
        case bounded
    }

    private enum State: BitwiseCopyable {
        /// Nobody waits.
        case satisfied
        /// Somebody waits since then; the publisher is asked at this time, having been asked so
        /// often.
        case wanted(since: Instant, askAt: Instant, tries: Int64)
    }

    static let intervalMilliseconds: Int64 = 400
    /// An encoder that does not answer is asked ever less often, but every 3.2 s at the least: it
    /// may be the requests that are lost, and pictures must be back soon when they no longer are.
    static let maximumBackoff: Int64 = 3
    /// Who comes so soon after another is waited for, while the request is not out.
    static let rushMilliseconds: Int64 = 100
    /// Nobody waits longer than this for the request, so that a second is enough for a picture.
    static let longestMilliseconds: Int64 = 960
    /// Keyframes that were asked for take this share of an encoding's bits at most.
    static let share = 0.2
    /// A keyframe that nobody asked for is an answer for another encoding, with keyframes of all:
    /// libwebrtc hears no further request so soon after.
    static let unaskedMilliseconds: Int64 = 300
    /// An encoding that sends little leaves room for keyframes, as if it had so many bits a second.
    static let leastBitrate = 150_000

    private var state = State.satisfied
    private var lastAsked: Instant?
    private var lastCame: Instant?
    /// Whether somebody had waited for that one.
    private var wasWanted = false
    /// Bytes of the last keyframe, or of what has come of it.
    private var keyframeBytes = 0
    private var keyframeTimestamp: UInt32?
    /// The last keyframe's first packet: its number, wraps counted, and which numbering it is of.
    private var last: (epoch: UInt32, number: Int64)?

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
        case .wanted(_, let askAt, _): askAt
        }
    }

    /// Somebody needs a keyframe of an encoding with this bitrate; 0 where that is not known.
    ///
    /// Sooner than `notBefore` it would be of no use to it.
    mutating func want(at now: Instant, bitrate: Int, notBefore: Instant? = nil) -> Outcome {
        if case .wanted(let since, let askAt, let tries) = state {
            guard tries == 0, askAt > now else { return .shared }
            let rush = max(askAt, now.advanced(milliseconds: Self.rushMilliseconds))
            let latest = since.advanced(milliseconds: Self.longestMilliseconds)
            state = .wanted(since: since, askAt: max(askAt, min(rush, latest)), tries: 0)
            return .shared
        }
        let fresh = lastAsked?.advanced(milliseconds: Self.intervalMilliseconds) ?? now
        let affordable = lastCame?.advanced(nanoseconds: cost(bitrate)) ?? now
        let latest = now.advanced(milliseconds: Self.longestMilliseconds)
        let askAt = min(latest, max(notBefore ?? now, max(fresh, affordable)))
        state = .wanted(since: now, askAt: askAt, tries: 0)
        guard askAt > now else { return .asked }
        return affordable > fresh ? .bounded : .held
    }

    /// The time in which the share of the bits makes up for the last keyframe, in nanoseconds.
    private func cost(_ bitrate: Int) -> Int64 {
        guard wasWanted else { return Self.unaskedMilliseconds * 1_000_000 }
        guard bitrate > 0 else { return 0 }
        let bits = Double(max(bitrate, Self.leastBitrate)) * Self.share
        let seconds = Double(keyframeBytes) * 8 / bits
        return min(Int64(saturating: min(seconds, 10) * 1_000), Self.longestMilliseconds)
            * 1_000_000
    }

    /// The publisher is heard after a silence: what it was asked meanwhile may never have come, so
    /// it need not wait for as long as it was asked in vain.
    mutating func hear(at now: Instant) {
        guard case .wanted(let since, let askAt, let tries) = state, tries > 0 else { return }
        let again = lastAsked?.advanced(milliseconds: Self.intervalMilliseconds) ?? now
        state = .wanted(since: since, askAt: min(askAt, max(now, again)), tries: 0)
    }

    /// Counts a packet; a keyframe that begins is what everybody waited for.
    mutating func receive(_ info: borrowing PacketInfo, bytes: Int) {
        if info.flags.contains(.keyframeStart) {
            wasWanted = isWanted
            satisfy()
            lastCame = info.arrival
            keyframeBytes = bytes
            keyframeTimestamp = info.timestamp
            last = (info.epoch, info.number)
        } else if let keyframeTimestamp {
            if info.timestamp == keyframeTimestamp {
                keyframeBytes &+= bytes
            } else {
                self.keyframeTimestamp = nil
            }
        }
    }

    /// The number of the last keyframe's first packet in the numbering `epoch`, if it is of that.
    func lastNumber(in epoch: UInt32) -> Int64? {
        last.flatMap { $0.epoch == epoch ? $0.number : nil }
    }

    /// Nobody waits any more, and what came before does not count against who comes next.
    mutating func restart() {
        state = .satisfied
        lastCame = nil
        last = nil
    }

    /// Nobody waits any more.
    mutating func satisfy() { state = .satisfied }

    /// Whether to ask now; if so, the next time is set.
    mutating func isDue(at now: Instant) -> Bool {
        guard case .wanted(let since, let askAt, let tries) = state, askAt <= now else {
            return false
        }
        let backoff = min(tries, Self.maximumBackoff)
        let again = now.advanced(milliseconds: Self.intervalMilliseconds << backoff)
        state = .wanted(since: since, askAt: again, tries: tries &+ 1)
        lastAsked = now
        return true
    }
}

extension KeyframeWishes {
    mutating func count(_ outcome: KeyframeRequests.Outcome) {
        switch outcome {
        case .asked: asked &+= 1
        case .shared: shared &+= 1
        case .held: held &+= 1
        case .bounded: bounded &+= 1
        }
    }
}
