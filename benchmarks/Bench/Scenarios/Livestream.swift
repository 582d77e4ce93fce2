import Foundation

// P1: one publisher with more and more viewers.
extension Bench {
    /// Viewers in the comparison with the floors.
    private static let usual = 200
    private static let rungs = [50, 100, 200, 300, 400, 600, 800, 1_000, 1_300, 1_700, 2_200]

    func livestream() async throws {
        let size = options.size ?? Self.usual
        let load = trial([.broadcast(.camera, viewers: size)])
        try await compare(.livestream, load, size: size)
        if options.profile == nil {
            var other = load
            other.profile = .cm
            try await measure(.livestream, SfudAdapter(), other, size: size)
        }
        guard options.size == nil, round == 1 else { return }
        let knee = try await climb(SfudAdapter())
        for rival in rivals { try await climb(rival) }
        try await around(knee)
    }

    /// Whether the load is too high: loss over 0.1 % or p99 latency over 5 ms.
    private static func isTooMuch(_ outcome: Outcome) -> Bool {
        outcome[.loss] ?? 0 > 0.001 || outcome[.latency99] ?? 0 > 5
    }

    /// Adds viewers until the load is too high; returns the last acceptable number.
    @discardableResult
    func climb(_ adapter: any Adapter) async throws -> Int {
        var passed: [Outcome] = []
        var knee = 0
        for viewers in Self.rungs {
            let load = trial([.broadcast(.camera, viewers: viewers)])
            var outcome = try await measure(
                .livestream,
                adapter,
                load,
                size: viewers,
                note: "ladder"
            )
            if Self.isTooMuch(outcome) {
                // Repeated once, because other processes may have disturbed the machine.
                outcome = try await measure(
                    .livestream,
                    adapter,
                    load,
                    size: viewers,
                    note: "ladder"
                )
            }
            if Self.isTooMuch(outcome) {
                // The first sizes are no real load: a failure there means a disturbance.
                if knee > 0 || viewers >= 400 { break }
                continue
            }
            passed.append(outcome)
            knee = viewers
        }
        var summary = Outcome(ScenarioID.livestream.rawValue, adapter.name, size: knee)
        summary.note = "knee"
        summary.profile = profile
        summary[.knee] = Double(knee)
        summary[.packetsPerSecond] = passed.last?[.packetsPerSecond]
        summary[.exponent] = LeastSquares.exponent(
            passed.prefix(4).map { ($0[.packetsPerSecond] ?? 0, $0[.cpuShare] ?? 0) }
        )
        keep(summary)
        return knee
    }

    /// Measures latency below the knee, and delivery beyond it.
    private func around(_ knee: Int) async throws {
        guard knee > 0 else { return }
        for (percent, note) in [(70, "70 % of the knee"), (150, "150 % of the knee")] {
            let viewers = max(1, knee * percent / 100)
            let load = trial([.broadcast(.camera, viewers: viewers)])
            try await measure(.livestream, SfudAdapter(), load, size: viewers, note: note)
        }
    }
}

/// Least-squares fits.
enum LeastSquares {
    /// Returns the exponent of the growth of `y` with `x`; `nil` with fewer than two points.
    static func exponent(_ points: [(x: Double, y: Double)]) -> Double? {
        line(points.filter { $0.x > 0 && $0.y > 0 }.map { (log($0.x), log($0.y)) })?.slope
    }

    /// Returns the line through the points.
    static func line(_ points: [(x: Double, y: Double)]) -> (start: Double, slope: Double)? {
        let count = Double(points.count)
        guard points.count > 1 else { return nil }
        let meanX = points.reduce(0) { $0 + $1.x } / count
        let meanY = points.reduce(0) { $0 + $1.y } / count
        let spread = points.reduce(0) { $0 + ($1.x - meanX) * ($1.x - meanX) }
        guard spread > 0 else { return nil }
        let slope = points.reduce(0) { $0 + ($1.x - meanX) * ($1.y - meanY) } / spread
        return (meanY - slope * meanX, slope)
    }
}
