/// Progress of the work, and an estimate of the remaining time.
struct ComposeProgress: Equatable, Sendable {
    /// Cost of all steps, and of those that an earlier run finished.
    var total: Double
    var found: Double
    /// Length of the composed file, in seconds.
    var duration: Double
    /// Cost of all finished steps, including those of an earlier run.
    var done: Double

    init(total: Double, found: Double, duration: Double) {
        self.total = max(total, 1e-6)
        self.found = found
        self.duration = duration
        done = found
    }

    /// Percent done, rounded down; the small addend makes up for rounding errors of sums.
    var percent: Int { Int((min(max(done / total + 1e-9, 0), 1) * 100).rounded(.down)) }

    /// Returns the progress line; `elapsed` is the time since this run began, in seconds.
    func line(elapsed: Double) -> String {
        let number = String(percent)
        var line = String(repeating: " ", count: max(0, 3 - number.count)) + "\(number) %"
        let made = done - found
        guard elapsed > 0.5, made > 0 else { return line }
        let speed = duration * made / total / elapsed
        let tenths = Int(min(speed, 10_000) * 10)
        line += "  \(tenths / 10).\(tenths % 10) x real time"
        let left = elapsed * max(0, total - done) / made
        return line + "  \(Self.clock(left)) left"
    }

    /// Formats as minutes and seconds, with hours if there are any.
    static func clock(_ seconds: Double) -> String {
        let whole = Int(min(max(seconds, 0), 1e6).rounded())
        func two(_ number: Int) -> String { number < 10 ? "0\(number)" : "\(number)" }
        let short = "\(whole / 60 % 60):\(two(whole % 60))"
        return whole < 3_600 ? short : "\(whole / 3_600):\(two(whole / 60 % 60)):\(two(whole % 60))"
    }
}
