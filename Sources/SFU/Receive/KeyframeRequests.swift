import RTP
import WorkerInterface

/// Scheduler of keyframe requests to the publisher of one encoding.
///
/// All keyframe requests of subscribers pass through it. Those that arrive while a request is
/// pending share its answer, those that arrive in a rush are combined, and keyframes take a bounded
/// share of the bitrate.
struct KeyframeRequests: BitwiseCopyable {
    /// Result of a subscriber's request.
    enum Outcome: BitwiseCopyable {
        /// The publisher is asked immediately.
        case asked
        /// A request is pending or scheduled; its answer serves this one too.
        case shared
        /// The request is delayed because the last one is too recent.
        case held
        /// The request is delayed because keyframes have used their share of the bitrate.
        case bounded
    }

    private enum State: BitwiseCopyable {
        /// No subscriber waits for a keyframe.
        case satisfied
        /// A subscriber has been waiting since `since`; the next request is due at `askAt`, after
        /// `tries` requests.
        case wanted(since: Instant, askAt: Instant, tries: Int64)
    }

    static let intervalMilliseconds: Int64 = 400
    /// Highest number of doublings of the interval between unanswered requests.
    ///
    /// At most 3.2 s pass between two requests: the requests themselves may be lost, and video must
    /// return soon after that ends.
    static let maximumBackoff: Int64 = 3
    /// Delay that each further request adds before the first is sent, so that a rush shares one
    /// keyframe.
    static let rushMilliseconds: Int64 = 100
    /// Longest delay of a request, which leaves time to show a picture within a second.
    static let longestMilliseconds: Int64 = 960
    /// Largest share of an encoding's bitrate for requested keyframes.
    static let share = 0.2
    /// Minimum time from an unrequested keyframe to the next request.
    ///
    /// Such a keyframe often answers a request for another encoding, because the encoder makes
    /// keyframes for all of them. libwebrtc ignores further requests that soon.
    static let unrequestedMilliseconds: Int64 = 300
    /// Bitrate assumed for an encoding that sends less, in bits a second, so that it has room for
    /// keyframes.
    static let leastBitrate = 150_000

    /// Minimum time between requests for subscribers that have a picture of a lower layer already.
    static let climbMilliseconds: Int64 = 2_000

    private var state = State.satisfied
    /// Whether only subscribers wait that have a picture of a lower layer.
    private(set) var isClimb = false
    private(set) var lastAsked: Instant?
    /// Time of the first request since a subscriber waits, or since the publisher was heard again.
    private var firstAsked: Instant?
    private(set) var lastKeyframeAt: Instant?
    /// Whether a subscriber had waited for that keyframe.
    private var wasRequested = false
    /// Bytes of the last keyframe received so far.
    private var keyframeBytes = 0
    private var keyframeTimestamp: UInt32?
    /// Epoch and extended sequence number of the last keyframe's first packet.
    private var last: (epoch: UInt32, number: Int64)?

    var isWanted: Bool {
        switch state {
        case .satisfied: false
        case .wanted: true
        }
    }

    /// Whether the publisher was asked more than so many nanoseconds ago, and has not sent one.
    func isOverdue(after patience: Int64, at now: Instant) -> Bool {
        guard case .wanted(_, _, let tries) = state, tries > 0, let firstAsked else { return false }
        return now.nanoseconds(since: firstAsked) > patience
    }

    /// Time of the next request; `nil` if no subscriber waits.
    var deadline: Instant? {
        switch state {
        case .satisfied: nil
        case .wanted(_, let askAt, _): askAt
        }
    }

    /// Registers a subscriber's need for a keyframe.
    ///
    /// `bitrate` is the encoding's, in bits a second, 0 if unknown. A keyframe before `notBefore`
    /// would be of no use to the subscriber.
    mutating func want(at now: Instant, bitrate: Int, notBefore: Instant? = nil) -> Outcome {
        if case .wanted(let since, let askAt, let tries) = state {
            guard tries == 0, askAt > now else {
                isClimb = false
                return .shared
            }
            guard !isClimb else {
                // Those who wait have a picture; this subscriber has none.
                isClimb = false
                let own = earliest(at: now, bitrate: bitrate, notBefore: notBefore).askAt
                state = .wanted(since: now, askAt: min(askAt, own), tries: 0)
                return min(askAt, own) > now ? .shared : .asked
            }
            let rush = max(askAt, now.advanced(milliseconds: Self.rushMilliseconds))
            let latest = since.advanced(milliseconds: Self.longestMilliseconds)
            state = .wanted(since: since, askAt: max(askAt, min(rush, latest)), tries: 0)
            return .shared
        }
        isClimb = false
        let (askAt, outcome) = earliest(at: now, bitrate: bitrate, notBefore: notBefore)
        state = .wanted(since: now, askAt: askAt, tries: 0)
        return outcome
    }

    /// Registers the need of a subscriber that has a picture of a lower layer: it may wait until
    /// `notBefore`, and delays nobody.
    mutating func wantClimb(at now: Instant, bitrate: Int, notBefore: Instant) -> Outcome {
        if case .wanted = state { return .shared }
        isClimb = true
        let (askAt, outcome) = earliest(at: now, bitrate: bitrate, notBefore: nil)
        state = .wanted(since: now, askAt: max(askAt, notBefore), tries: 0)
        return notBefore > max(askAt, now) ? .held : outcome
    }

    /// Returns the time for a request that a subscriber makes now, and what that means for it.
    private func earliest(
        at now: Instant,
        bitrate: Int,
        notBefore: Instant?
    ) -> (askAt: Instant, outcome: Outcome) {
        let fresh = lastAsked?.advanced(milliseconds: Self.intervalMilliseconds) ?? now
        let affordable = lastKeyframeAt?.advanced(nanoseconds: cost(bitrate)) ?? now
        let latest = now.advanced(milliseconds: Self.longestMilliseconds)
        let askAt = min(latest, max(notBefore ?? now, max(fresh, affordable)))
        guard askAt > now else { return (askAt, .asked) }
        return (askAt, affordable > fresh ? .bounded : .held)
    }

    /// Returns the time, in nanoseconds, after which the last keyframe is within the share of the
    /// bitrate.
    private func cost(_ bitrate: Int) -> Int64 {
        guard wasRequested else { return Self.unrequestedMilliseconds * 1_000_000 }
        guard bitrate > 0 else { return 0 }
        let bits = Double(max(bitrate, Self.leastBitrate)) * Self.share
        let seconds = Double(keyframeBytes) * 8 / bits
        return min(Int64(saturating: min(seconds, 10) * 1_000), Self.longestMilliseconds)
            * 1_000_000
    }

    /// Shortens the backoff when the publisher resumes after a silence.
    ///
    /// Requests during the silence may never have arrived.
    mutating func hear(at now: Instant) {
        guard case .wanted(let since, let askAt, let tries) = state, tries > 0 else { return }
        let again = lastAsked?.advanced(milliseconds: Self.intervalMilliseconds) ?? now
        state = .wanted(since: since, askAt: min(askAt, max(now, again)), tries: 0)
    }

    /// Counts a packet; the start of a keyframe answers all pending requests.
    mutating func receive(_ info: borrowing PacketInfo, bytes: Int) {
        if info.flags.contains(.keyframeStart) {
            wasRequested = isWanted
            satisfy()
            lastKeyframeAt = info.arrival
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

    /// Returns the extended sequence number of the last keyframe's first packet, or `nil` if it is
    /// of another epoch.
    func lastNumber(in epoch: UInt32) -> Int64? {
        last.flatMap { $0.epoch == epoch ? $0.number : nil }
    }

    /// Cancels the pending request and forgets the last keyframe, so that it does not delay the
    /// next request.
    mutating func restart() {
        state = .satisfied
        lastKeyframeAt = nil
        last = nil
    }

    /// Cancels the pending request.
    mutating func satisfy() { state = .satisfied }

    /// Returns whether a request is due, and schedules the next one if so.
    mutating func isDue(at now: Instant) -> Bool {
        guard case .wanted(let since, let askAt, let tries) = state, askAt <= now else {
            return false
        }
        let backoff = min(tries, Self.maximumBackoff)
        let again = now.advanced(milliseconds: Self.intervalMilliseconds << backoff)
        state = .wanted(since: since, askAt: again, tries: tries &+ 1)
        lastAsked = now
        if tries == 0 { firstAsked = now }
        return true
    }
}

extension KeyframeRequestCounts {
    mutating func count(_ outcome: KeyframeRequests.Outcome) {
        switch outcome {
        case .asked: asked &+= 1
        case .shared: shared &+= 1
        case .held: held &+= 1
        case .bounded: bounded &+= 1
        }
    }
}
