/// Packet indexes of a slot that were passed over: below the newest one, and never sent.
///
/// One SRTP index must never carry two packets (RFC 3711 §9.1, RFC 7714 §8). So a packet gets an
/// index at or below the newest one only if that index is recorded here, and only once. Consecutive
/// numbers record nothing, so forwarding in order does not touch this.
struct UnsentIndexes: BitwiseCopyable {
    /// Size of a receiver's replay window; older packets are never sent late.
    static let reach = Int64(SRTPSession.replayWindow)
    private static let words = 16

    /// One bit per index, 64 to a word; `blocks` says which 64 indexes a word stands for.
    private var bits = [16 of UInt64](repeating: 0)
    private var blocks = [16 of Int64](repeating: -1)
    /// Number of further indexes that may be passed over.
    private(set) var allowance = GapAllowance()

    /// Records that all indexes of a range were passed over; only the newest of them matter.
    mutating func passOver(_ range: Range<Int64>) {
        allowance.passOver(range)
        var index = max(range.lowerBound, range.upperBound &- Self.reach, 0)
        while index < range.upperBound {
            let block = index >> 6
            let end = min(range.upperBound, (block &+ 1) << 6)
            let word = Self.place(of: index).word
            if blocks[word] != block {
                blocks[word] = block
                bits[word] = 0
            }
            // A shift by 64 gives 0, and 0 minus one gives all bits.
            let ones = (1 as UInt64) << UInt64(end &- index) &- 1
            bits[word] |= ones << UInt64(index & 63)
            index = end
        }
    }

    func contains(_ index: Int64) -> Bool {
        let (word, bit) = Self.place(of: index)
        return blocks[word] == index >> 6 && bits[word] & bit != 0
    }

    /// Records that an index is used now.
    mutating func remove(_ index: Int64) {
        guard contains(index) else { return }
        allowance.fill()
        let (word, bit) = Self.place(of: index)
        bits[word] &= ~bit
    }

    /// Records that a packet was left out without a gap.
    mutating func countLeftOut() { allowance.fill() }

    /// Forgets all indexes from `index` on, when the newest index moves below it.
    mutating func removeAll(from index: Int64) {
        for word in 0..<Self.words {
            let first = blocks[word] << 6
            if first >= index {
                bits[word] = 0
            } else if index &- first < 64 {
                bits[word] &= (1 << UInt64(index &- first)) &- 1
            }
        }
    }

    private static func place(of index: Int64) -> (word: Int, bit: UInt64) {
        (Int(truncatingIfNeeded: index >> 6) & (words - 1), 1 << UInt64(index & 63))
    }
}

/// Bound for the packet indexes that one stream leaves unused.
///
/// A receiver that gets nothing of a stream for 2^15 indexes can never read it again: it takes what
/// comes next for the past (RFC 3711 §3.3.1). So a publisher that skips numbers must not make those
/// of its viewers run: at most one is skipped for each packet that comes, and 3,000 more at once.
///
/// Packets that follow the newest one do not touch it.
struct GapAllowance: BitwiseCopyable {
    /// Most indexes that may be skipped at once.
    static let maximum = Int64(SequenceWindow.maximumJump)

    /// Indexes that could be skipped when `mark` was the newest one.
    private var left = maximum
    private var mark: Int64 = 0

    /// Whether the stream may go on with `index`, of which `highest` is the newest.
    func allowsStep(from highest: Int64, to index: Int64) -> Bool {
        index &- highest &- 1 <= current(at: highest)
    }

    /// Skips indexes, and uses the one after them.
    mutating func passOver(_ range: Range<Int64>) {
        let count = range.upperBound &- range.lowerBound
        left = max(0, current(at: range.lowerBound &- 1) &- count) &+ 1
        mark = range.upperBound
    }

    /// Uses an index that had been skipped, or leaves out a packet without a gap.
    mutating func fill() { left = min(left &+ 1, Self.maximum) }

    private func current(at highest: Int64) -> Int64 {
        min(left &+ max(0, highest &- mark), Self.maximum)
    }
}
