extension RTPRewriter {
    /// Spans before the current one; older RTP packets are not retransmitted.
    struct PreviousSpans: ~Copyable {
        /// Maximum number of spans kept: enough for a second in which sixty runs are omitted.
        static let capacity = 128

        private var spans = RecentRing<SequenceSpan>(capacity: capacity)
        /// Unused indexes below the newest one that may still be sent; allocated for the first of
        /// them.
        private var unsent = LazyBox<UnsentIndexes>()
        /// Last omitted picture id that was counted; larger than any picture id if there is none.
        var skippedPicture = UInt32.max

        /// SequenceSpan that ended as the `age`-th before the current one, counted from 1.
        subscript(age age: Int) -> SequenceSpan? { spans[age: age] }

        mutating func append(_ span: SequenceSpan) { spans.append(span) }

        func isUnsent(_ index: Int64) -> Bool {
            unsent.isMade && unsent.value.contains(index)
        }

        /// Whether the stream may go on with `index`, of which `highest` is the newest.
        func allowsStep(from highest: Int64, to index: Int64) -> Bool {
            let allowance = unsent.isMade ? unsent.value.allowance : GapAllowance()
            return allowance.allowsStep(from: highest, to: index)
        }

        /// Records that a packet was left out without a gap.
        mutating func countLeftOut() {
            if unsent.isMade { unsent.value.countLeftOut() }
        }

        mutating func passOver(_ range: Range<Int64>) {
            if !unsent.isMade { unsent.make(UnsentIndexes()) }
            unsent.value.passOver(range)
        }

        mutating func use(_ index: Int64) {
            if unsent.isMade { unsent.value.remove(index) }
        }

        mutating func retract(from index: Int64) {
            if unsent.isMade { unsent.value.removeAll(from: index) }
        }
    }
}
