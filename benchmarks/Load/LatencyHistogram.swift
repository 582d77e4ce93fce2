/// How long packets took, in steps of a microsecond up to a tenth of a second.
struct LatencyHistogram: Sendable {
    private var counts = [UInt32](repeating: 0, count: 100_000)
    private(set) var total: UInt64 = 0
    /// In nanoseconds.
    private(set) var longest: Int64 = 0

    mutating func note(nanoseconds: Int64) {
        let step = min(max(0, Int(nanoseconds / 1_000)), counts.count - 1)
        counts[step] &+= 1
        total += 1
        longest = max(longest, nanoseconds)
    }

    /// The time in microseconds within which this share of the packets came.
    func microseconds(_ share: Double) -> Int? {
        guard total > 0 else { return nil }
        let wanted = UInt64((Double(total) * share).rounded(.up))
        var seen: UInt64 = 0
        for (step, count) in counts.enumerated() {
            seen += UInt64(count)
            if seen >= wanted { return step }
        }
        return nil
    }
}
