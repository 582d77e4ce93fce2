import Foundation

// Targets other than the cost of packets: workers, joins, memory.
extension Targets {
    var workers: [TargetRow] {
        ["P1", "P3"].compactMap { note in
            func values(_ figure: Figure, workers: Int) -> [Double] {
                let found = findings.outcomes.filter {
                    $0.scenario == ScenarioID.workers.rawValue && $0.note == note
                        && $0.workers == workers
                }
                return found.compactMap { $0[figure] }
            }
            let one = values(.busiestMicroseconds, workers: 1)
            let two = values(.busiestMicroseconds, workers: 2)
            guard let speedup = one.medianRatio(to: two) else { return nil }
            let costs = [1, 2].map { values(.cpuMicroseconds, workers: $0).median ?? 0 }
            return TargetRow(
                scenario: "P12, \(note)",
                figure: "1 to 2 workers by the busiest thread (CPU a packet with 1 and 2)",
                bar: "≥ 1.8 ×",
                value: String(format: "%.2f × (%.2f, %.2f µs)", speedup, costs[0], costs[1]),
                isMet: speedup >= 1.8
            )
        }
    }

    var storm: [TargetRow] {
        let calm = findings.median(.storm, "sfud", note: "before the storm")
        return ["all at once", "50 a second"].flatMap { note -> [TargetRow] in
            guard let found = findings.median(.storm, "sfud", note: note) else { return [] }
            var rows = [joins(.joinsPerCPUSecond, "joins a second of CPU", 1_000, note, found)]
            if note == "all at once" {
                rows.append(joins(.joinsPerSecond, "joins a second", 500, note, found))
            }
            let before = inside(calm)
            let during = inside(found)
            rows.append(
                TargetRow(
                    scenario: "P10, \(found.size)",
                    figure: "p99 of the running room before and then, in the daemon (end to end)",
                    bar: "≤ 5 ms",
                    value: "\(before), \(during)",
                    isMet: found[.delay99].map { $0 <= 5 }
                )
            )
            return rows
        }
    }

    private func joins(
        _ figure: Figure,
        _ words: String,
        _ least: Double,
        _ note: String,
        _ found: Outcome
    ) -> TargetRow {
        let rate = found[figure] ?? 0
        let all = findings.values(figure, .storm, "sfud", note: note)
        var row = TargetRow(
            scenario: "P10, \(found.size)",
            figure: "\(words), \(note)",
            bar: String(format: "≥ %.0f", least),
            value: String(format: "%.0f", rate) + all.spread,
            isMet: rate >= least
        )
        for rival in findings.rivals {
            let other = findings.value(figure, .storm, rival, note: note) ?? 0
            row.others[rival] = String(format: "%.0f (%.1f ×)", other, rate / max(1, other))
        }
        return row
    }

    private func inside(_ outcome: Outcome?) -> String {
        let delay = outcome?[.delay99].map { String(format: "≤ %.3f ms", $0) } ?? "not told"
        return delay + String(format: " (%.2f ms)", outcome?[.latency99] ?? 0)
    }

    private func zip(_ left: Double?, _ right: Double?) -> (Double, Double)? {
        guard let left, let right else { return nil }
        return (left, right)
    }

    var idle: [TargetRow] {
        let bars: [(Figure, String, String, Double, Double, String)] = [
            (.cpuShare, "idle CPU of a core", "≤ 1 %", 0.01, 100, "%.2f %%"),
            (.bytesPerViewer, "memory of a connected viewer", "≤ 64 kB", 64_000, 1e-3, "%.1f kB"),
            (
                .bytesPerSubscription, "memory of a further subscription", "≤ 1 kB", 1_000, 1e-3,
                "%.2f kB"
            ),
        ]
        return bars.compactMap { figure, name, bar, most, factor, format in
            guard let own = findings.value(figure, .idle, "sfud", note: nil) else { return nil }
            let sizes = findings.outcomes.filter {
                $0.scenario == ScenarioID.idle.rawValue && $0[figure] != nil
            }
            var row = TargetRow(
                scenario: "P14, \(sizes.first?.size ?? 0)",
                figure: name,
                bar: bar,
                value: String(format: format, own * factor),
                isMet: own <= most
            )
            for rival in findings.rivals {
                guard let other = findings.value(figure, .idle, rival, note: nil) else { continue }
                row.others[rival] =
                    String(format: format, other * factor)
                    + String(format: " (%.2f ×)", own / max(1e-9, other))
            }
            return row
        }
    }

    /// Effect of calls about another room on the room with media.
    var control: [TargetRow] {
        guard let alone = findings.median(.control, "sfud", note: "no calls"),
            let beside = findings.median(
                .control,
                "sfud",
                note: "\(Bench.controlCalls) calls a second"
            )
        else { return [] }
        let tails = [alone, beside].map { $0[.delay999] }
        let rate = beside[.callsPerSecond] ?? 0
        let shares = [alone, beside].map { 100 * ($0[.controlShare] ?? 0) }
        return [
            TargetRow(
                scenario: "control, \(beside.size)",
                figure: "p99.9 in the daemon, alone and beside calls",
                bar: "≤ 2 ms, and 1 ms more than alone",
                value: tails.map { $0.map { String(format: "≤ %.3f ms", $0) } ?? "not told" }
                    .joined(separator: ", "),
                isMet: zip(tails[0], tails[1]).map { $1 <= 2 && $1 - $0 <= 1 }
            ),
            TargetRow(
                scenario: "control, \(beside.size)",
                figure:
                    "calls answered a second; p99; CPU of threads without media, before and then",
                bar: "\(Bench.controlCalls)",
                value: String(
                    format: "%.0f; %.2f ms; %.1f %%, %.1f %%",
                    rate,
                    beside[.callLatency99] ?? 0,
                    shares[0],
                    shares[1]
                ),
                isMet: rate >= 0.99 * Double(Bench.controlCalls)
            ),
        ]
    }
}
