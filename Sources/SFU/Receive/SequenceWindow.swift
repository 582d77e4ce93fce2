import RTP

/// Receive window of a stream's recent sequence numbers, with wraps counted (RFC 3550 A.1).
struct SequenceWindow: ~Copyable {
    enum Verdict: Equatable {
        /// The newest number so far; `gap` numbers before it were skipped.
        case newest(gap: Int)
        /// An older number that had been missing.
        case late
        case duplicate
        /// Older than the window.
        case tooOld
        /// A jump so large that the sender must have restarted.
        case restarted
    }

    /// Size of the window, in numbers.
    static let size = 1_024
    /// Largest jump that is not a restart (RFC 3550 A.1, MAX_DROPOUT).
    static let maximumJump = 3_000

    /// Newest number with wraps counted; `nil` before the first packet.
    private(set) var highest: Int?
    private var bits = Ring<UInt64>(capacity: size / 64, filledWith: 0)

    /// Records a number.
    ///
    /// A retransmission never counts as a restart of the stream.
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

    /// Returns whether a number within the window, with wraps counted, has arrived.
    func contains(_ extended: Int) -> Bool { bits[word(extended)] & bit(extended) != 0 }

    /// Continues an earlier process's window, of which `extended` was the newest number.
    mutating func resume(at extended: Int) {
        for index in 0..<bits.capacity { bits[index] = 0 }
        bits[word(extended)] |= bit(extended)
        highest = extended
    }

    private mutating func start(at number: SequenceNumber, after last: Int = 0) {
        for index in 0..<bits.capacity { bits[index] = 0 }
        // Numbers with wraps counted never go back, so they order packets across a restart.
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
    /// Truncates a number with wraps counted to the 16 bits on the wire.
    init(truncating extended: Int) { self.init(rawValue: UInt16(truncatingIfNeeded: extended)) }
}
