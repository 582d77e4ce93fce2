/// Bound for the packet indexes that one stream leaves unused.
///
/// A receiver that gets nothing of a stream for 2^15 indexes can never read it again: it takes what
/// comes next for the past (RFC 3711 §3.3.1). So a publisher that skips numbers must not make those
/// of its viewers run: at most one is skipped for each that is used, and 3,000 more at once.
///
/// Only packets that leave a gap, or fill one, touch it.
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

    /// Uses an index that had been skipped.
    mutating func fill() { left = min(left &+ 1, Self.maximum) }

    private func current(at highest: Int64) -> Int64 {
        min(left &+ max(0, highest &- mark), Self.maximum)
    }
}
