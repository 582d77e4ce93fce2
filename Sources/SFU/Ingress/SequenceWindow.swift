import RTP

/// Which of the newest sequence numbers of a stream have come, without wrap (RFC 3550 A.1).
struct SequenceWindow: ~Copyable {
    enum Verdict: Equatable {
        /// Newer than all before; `gap` numbers between were skipped.
        case newest(gap: Int)
        /// Fills a hole.
        case late
        case duplicate
        /// Further back than the window reaches.
        case tooOld
        /// So far from the others that the sender must have started anew.
        case restarted
    }

    /// Numbers remembered.
    static let size = 1_024
    /// A jump by more is a new start (RFC 3550 A.1, MAX_DROPOUT).
    static let maximumJump = 3_000

    /// The newest number with its wraps counted; `nil` before the first packet.
    private(set) var highest: Int?
    private var bits = Ring<UInt64>(capacity: size / 64, filledWith: 0)

    /// Enters a number.
    ///
    /// A retransmission repairs what there was: it never starts the stream anew.
    mutating func insert(_ number: SequenceNumber, isRepair: Bool = false) -> Verdict {
        guard let highest else {
            start(at: number)
            return .newest(gap: 0)
        }
        let step = number.distance(from: SequenceNumber(truncating: highest))
        let extended = highest &+ step
        if isRepair, abs(step) > Self.maximumJump { return .tooOld }
        if step > 0 {
            guard step <= Self.maximumJump else {
                start(at: number, after: highest)
                return .restarted
            }
            advance(to: extended, from: highest)
            return .newest(gap: step &- 1)
        }
        guard step > -Self.size else {
            guard step < -Self.maximumJump else { return .tooOld }
            start(at: number, after: highest)
            return .restarted
        }
        guard !contains(extended) else { return .duplicate }
        bits[word(extended)] |= bit(extended)
        return .late
    }

    /// Whether an extended number within the window has come.
    func contains(_ extended: Int) -> Bool { bits[word(extended)] & bit(extended) != 0 }

    private mutating func start(at number: SequenceNumber, after last: Int = 0) {
        for index in 0..<bits.capacity { bits[index] = 0 }
        // The extended number never goes back, so it can order packets across a restart.
        let cycle = last / 65_536 &+ 1
        let extended = cycle &* 65_536 &+ Int(number.rawValue)
        bits[word(extended)] |= bit(extended)
        highest = extended
    }

    private mutating func advance(to extended: Int, from highest: Int) {
        if extended &- highest >= Self.size {
            for index in 0..<bits.capacity { bits[index] = 0 }
        } else {
            for skipped in (highest + 1)...extended { bits[word(skipped)] &= ~bit(skipped) }
        }
        bits[word(extended)] |= bit(extended)
        self.highest = extended
    }

    private func word(_ extended: Int) -> Int { extended >> 6 }
    private func bit(_ extended: Int) -> UInt64 { 1 << UInt64(extended & 63) }
}

extension SequenceNumber {
    /// The 16 bits that go on the wire of a number whose wraps are counted.
    init(truncating extended: Int) { self.init(rawValue: UInt16(truncatingIfNeeded: extended)) }
}
