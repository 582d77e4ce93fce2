internal import RTP

/// What one transport's RTCP may cost, as a bucket that fills evenly.
///
/// A datagram costs one token, and each block of transport-wide feedback in it beyond the first one
/// more, as such a block is what takes most time. Only what was authentic is charged: somebody who
/// forges a participant's address cannot use up its budget.
struct RTCPBudget {
    private var tokens: Int64?
    private var filled = Instant(nanoseconds: 0)

    /// Fills up what has come since the last time, at most half a second's worth.
    ///
    /// - Returns: Whether anything is left.
    mutating func fill(_ perSecond: Int, at now: Instant) -> Bool {
        let nanosecondsPerToken = max(1_000_000_000 / Int64(max(perSecond, 1)), 1)
        let most = Int64(max(perSecond / 2, 1))
        guard let tokens else {
            self.tokens = most
            filled = now
            return true
        }
        let passed = max(0, now.nanoseconds(since: filled))
        let gained = min(passed / nanosecondsPerToken, most)
        if gained > 0 {
            self.tokens = min(tokens &+ gained, most)
            // What is left of a token's time counts for the next.
            filled = now.advanced(nanoseconds: -(passed % nanosecondsPerToken))
        }
        return (self.tokens ?? 0) > 0
    }

    /// Charges one token, if there is one.
    mutating func charge() -> Bool {
        guard let tokens, tokens > 0 else { return false }
        self.tokens = tokens &- 1
        return true
    }
}
