/// How far the work is, and how long it will take.
struct ComposeProgress: Equatable, Sendable {
    /// What all steps cost together, and what those cost that an earlier run had done.
    var total: Double
    var found: Double
    /// The length of the composed file, in seconds.
    var duration: Double
    /// What has been done, that of the earlier run with it.
    var done: Double

    init(total: Double, found: Double, duration: Double) {
        self.total = max(total, 1e-6)
        self.found = found
        self.duration = duration
        done = found
    }

    /// Rounded down, but for what sums of fractions lose.
    var percent: Int { Int((min(max(done / total + 1e-9, 0), 1) * 100).rounded(.down)) }

    /// One line; `elapsed` is in seconds since this run began.
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

    /// Hours where there are any, minutes and seconds.
    static func clock(_ seconds: Double) -> String {
        let whole = Int(min(max(seconds, 0), 1e6).rounded())
        func two(_ number: Int) -> String { number < 10 ? "0\(number)" : "\(number)" }
        let short = "\(whole / 60 % 60):\(two(whole % 60))"
        return whole < 3_600 ? short : "\(whole / 3_600):\(two(whole / 60 % 60)):\(two(whole % 60))"
    }
}
