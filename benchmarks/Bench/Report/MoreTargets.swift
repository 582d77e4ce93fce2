import Foundation

// Targets other than the cost of packets: workers, joins, memory.
extension Targets {
    var workers: [TargetRow] {
        let summaries = findings.outcomes.filter { $0[.speedup] != nil }
        return summaries.filter { $0.round == 1 }.compactMap { one in
            guard
                let speedup = findings.spread(
                    .speedup,
                    .workers,
                    "sfud",
                    size: one.size,
                    note: one.note
                )
            else { return nil }
            let costs = [1, 2].compactMap { workers in
                findings.outcomes.last {
                    $0.scenario == ScenarioID.workers.rawValue && $0.size == one.size
                        && $0.workers == workers && $0[.cpuMicroseconds] != nil
                }
            }
            let threads = [Figure.busiestMicroseconds, .secondMicroseconds].map {
                String(format: "%.2f", costs.last?[$0] ?? 0)
            }
            let each = costs.map { String(format: "%.2f", $0[.cpuMicroseconds] ?? 0) }
            return TargetRow(
                scenario: "P12, \(one.size)",
                figure: one.note + " (CPU a packet with 1 and 2; of the two busiest threads)",
                bar: "≥ 1.8 ×",
                value: speedup.text("%.2f") + " ×"
                    + " (\(each.joined(separator: ", ")) µs; \(threads.joined(separator: " + ")))",
                isMet: speedup.median >= 1.8
            )
        }
    }

    var storm: [TargetRow] {
        ["all at once", "50 a second"].flatMap { note -> [TargetRow] in
            guard
                let rate = findings.spread(.joinsPerCPUSecond, .storm, "sfud", note: note),
                let size = findings.last(.storm, "sfud", note: note)?.size
            else { return [] }
            var row = TargetRow(
                scenario: "P10, \(size)",
                figure: "joins a second and core, \(note)",
                bar: "≥ 1000",
                value: rate.text("%.0f"),
                isMet: rate.median >= 1_000
            )
            for rival in findings.rivals {
                guard
                    let other = findings.spread(.joinsPerCPUSecond, .storm, rival, note: note)
                else { continue }
                row.others[rival] = String(
                    format: "%.0f; %.1f ×",
                    other.median,
                    rate.median / max(1, other.median)
                )
            }
            return [row] + stormByClock(note, size: size) + stormDelay(note, size: size)
        }
    }

    /// Joins by the clock; those that come by and by have their rate from us.
    private func stormByClock(_ note: String, size: Int) -> [TargetRow] {
        guard note == "all at once",
            let rate = findings.spread(.joinsPerSecond, .storm, "sfud", note: note)
        else { return [] }
        return [
            TargetRow(
                scenario: "P10, \(size)",
                figure: "joins a second by the clock, \(note)",
                bar: "≥ 500",
                value: rate.text("%.0f"),
                isMet: rate.median >= 500
            )
        ]
    }

    private func stormDelay(_ note: String, size: Int) -> [TargetRow] {
        let notes = ["before the storm", note]
        let inside = notes.map { findings.spread(.delay99, .storm, "sfud", note: $0) }
        let whole = notes.map {
            findings.spread(.latency99, .storm, "sfud", note: $0)?.median ?? 0
        }
        let told = Swift.zip(inside, whole).map { inside, whole in
            (inside.map { "≤ " + $0.text("%.3f") + " ms" } ?? "not told")
                + String(format: " (%.2f ms)", whole)
        }
        return [
            TargetRow(
                scenario: "P10, \(size)",
                figure: "p99 of the running room before and then, in the daemon (end to end)",
                bar: "≤ 5 ms",
                value: told.joined(separator: ", "),
                isMet: inside[1].map { $0.median <= 5 }
            )
        ]
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
            guard let own = findings.spread(figure, .idle, "sfud", note: nil) else { return nil }
            let sizes = findings.outcomes.filter {
                $0.scenario == ScenarioID.idle.rawValue && $0[figure] != nil
            }
            var row = TargetRow(
                scenario: "P14, \(sizes.first?.size ?? 0)",
                figure: name,
                bar: bar,
                value: own.text(format, by: factor),
                isMet: own.median <= most
            )
            for rival in findings.rivals {
                guard let other = findings.spread(figure, .idle, rival, note: nil) else { continue }
                row.others[rival] =
                    String(format: format, other.median * factor)
                    + String(format: "; %.2f ×", own.median / max(1e-9, other.median))
            }
            return row
        }
    }

    /// Effect of calls about another room on the room with media.
    var control: [TargetRow] {
        let notes = ["no calls", "\(Bench.controlCalls) calls a second"]
        guard let beside = findings.last(.control, "sfud", note: notes[1]) else { return [] }
        func values(_ figure: Figure) -> [Spread?] {
            notes.map { findings.spread(figure, .control, "sfud", note: $0) }
        }
        let tails = values(.delay999)
        let rate = values(.callsPerSecond)[1]?.median ?? 0
        let latency = values(.callLatency99)[1]?.median ?? 0
        let shares = values(.controlShare).map { 100 * ($0?.median ?? 0) }
        return [
            TargetRow(
                scenario: "control, \(beside.size)",
                figure: "p99.9 in the daemon, alone and beside calls",
                bar: "≤ 2 ms, and 1 ms more than alone",
                value: tails.map { $0.map { "≤ " + $0.text("%.3f") + " ms" } ?? "not told" }
                    .joined(separator: ", "),
                isMet: zip(tails[0]?.median, tails[1]?.median).map { $1 <= 2 && $1 - $0 <= 1 }
            ),
            TargetRow(
                scenario: "control, \(beside.size)",
                figure:
                    "calls answered a second; p99; CPU of threads without media, before and then",
                bar: "\(Bench.controlCalls)",
                value: String(
                    format: "%.0f; %.2f ms; %.1f %%, %.1f %%",
                    rate,
                    latency,
                    shares[0],
                    shares[1]
                ),
                isMet: rate >= 0.99 * Double(Bench.controlCalls)
            ),
        ]
    }
}
