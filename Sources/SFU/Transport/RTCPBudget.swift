import RTP

/// Token bucket for one transport's RTCP.
///
/// A datagram costs one token. Expensive blocks cost more if that token does not cover them:
/// transport-wide feedback and PLI one each, a NACK one for each 64 packets that it names, and FIR
/// and reports one for each 16 streams, as each is looked up among the slots. Only authenticated
/// datagrams are charged, so an attacker who forges a participant's address cannot exhaust its
/// budget.
struct RTCPBudget {
    /// Packets named in a NACK per token.
    private static let packetsNamed = 64
    /// Streams named in a FIR or a report per token.
    private static let streamsNamed = 16

    /// Returns a block's cost in tokens.
    static func cost(of block: borrowing RTCPBlock) -> Int64 {
        switch block.type {
        case RTCPType.transportFeedback:
            if block.count == 15 { return 1 }
            return block.count == 1 ? cost(ofNACK: block) : 0
        case RTCPType.payloadFeedback where block.count == 1: return 1
        case RTCPType.payloadFeedback where block.count == 4:
            guard let request = try? FullIntraRequest(copy block) else { return 0 }
            return Int64((request.count &+ streamsNamed &- 1) / streamsNamed)
        case RTCPType.senderReport, RTCPType.receiverReport:
            return Int64((Int(block.count) &+ streamsNamed &- 1) / streamsNamed)
        default: return 0
        }
    }

    private static func cost(ofNACK block: borrowing RTCPBlock) -> Int64 {
        guard let request = try? GenericNACK(copy block) else { return 0 }
        var named = request.count
        for index in 0..<request.count { named &+= request[index].bitmask.nonzeroBitCount }
        return Int64((named &+ packetsNamed &- 1) / packetsNamed)
    }

    private var tokens: Int64?
    private var filled = Instant(nanoseconds: 0)

    /// Adds the tokens gained since the last call, up to half a second's worth.
    ///
    /// - Returns: Whether any token is left.
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
            // The remainder counts toward the next token.
            filled = now.advanced(nanoseconds: -(passed % nanosecondsPerToken))
        }
        return (self.tokens ?? 0) > 0
    }

    /// Takes `cost` tokens if there are enough; returns whether it did.
    mutating func charge(_ cost: Int64 = 1) -> Bool {
        guard let tokens, tokens >= cost else { return false }
        self.tokens = tokens &- cost
        return true
    }
}
