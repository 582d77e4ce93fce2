import Foundation

/// One row of the report's table: a target and the measured value.
struct TargetRow {
    var scenario: String
    var figure: String
    var bar: String
    /// Value of sfud.
    var value: String
    /// Values of other systems with their ratio to sfud's, by system.
    var others: [String: String] = [:]
    /// `nil` if there is no target.
    var isMet: Bool?
}

/// Targets for the figures.
struct Targets {
    let findings: Findings

    var rows: [TargetRow] {
        cpu + copies + knee + overload + delay + burst + workers + storm + idle + control
    }

    /// Highest allowed ratios of sfud's CPU cost to those of other systems; `nil`: no target.
    private struct Ratio {
        var scenario: ScenarioID
        var profile = BenchProfile.gcm
        var floor: Double?
        var rival: Double?
    }

    private static let ratios = [
        Ratio(scenario: .livestream, floor: 0.8, rival: 0.3),
        Ratio(scenario: .livestream, profile: .cm),
        Ratio(scenario: .panel, floor: 1.1),
        Ratio(scenario: .meeting, floor: 0.8, rival: 0.3),
        Ratio(scenario: .meeting, profile: .cm),
        Ratio(scenario: .fours, floor: 0.9, rival: 0.3),
        Ratio(scenario: .pairs, floor: 1.15, rival: 0.3),
        Ratio(scenario: .screen),
    ]

    /// CPU a packet compared with the floors and the other SFUs.
    private var cpu: [TargetRow] {
        Self.ratios.flatMap { ratio in
            findings.sizes(ratio.scenario).compactMap { cpu(ratio, size: $0) }
        }
    }

    private func cpu(_ ratio: Ratio, size: Int) -> TargetRow? {
        let (scenario, profile) = (ratio.scenario, ratio.profile)
        guard
            let own = findings.spread(
                .cpuMicroseconds,
                scenario,
                "sfud",
                size: size,
                profile: profile
            )
        else { return nil }
        var most: [String: Double] = [:]
        most["floor-1"] = ratio.floor
        for rival in findings.rivals { most[rival] = ratio.rival }
        var row = TargetRow(
            scenario: "\(scenario.rawValue), \(size)",
            figure: "CPU a packet, \(profile.rawValue)",
            bar: most.sorted { $0.key < $1.key }.map { "≤ \($0.value) × \($0.key)" }
                .joined(separator: ", "),
            value: own.text("%.2f") + " µs"
        )
        for system in findings.systems where system != "sfud" {
            guard let other = findings.spread(.cpuMicroseconds, scenario, system, size: size),
                let times = findings.ratio(
                    .cpuMicroseconds,
                    scenario,
                    to: system,
                    size: size,
                    profile: profile
                )
            else { continue }
            row.others[system] =
                String(format: "%.2f µs; ", other.median) + times.text("%.2f") + " ×"
            if let most = most[system] { row.isMet = (row.isMet ?? true) && times.median <= most }
        }
        return row
    }

    /// Time that a copy takes in a large audience, compared with a small one.
    private var copies: [TargetRow] {
        let costs = Bench.panelEnds.compactMap {
            findings.spread(.cpuMicroseconds, .panel, "sfud", size: $0)
        }
        guard costs.count == 2 else { return [] }
        let times = costs[1].median / costs[0].median
        return [
            TargetRow(
                scenario: "P2, \(Bench.panelEnds[1])",
                figure: "CPU a packet, as a multiple of that for \(Bench.panelEnds[0]) listeners",
                bar: "≤ 1.2 ×",
                value: String(format: "%.2f × (", times)
                    + costs.reversed().map { $0.text("%.2f") }.joined(separator: " ÷ ") + " µs)",
                isMet: times <= 1.2
            )
        ]
    }

    private var knee: [TargetRow] {
        guard let own = findings.last(.livestream, "sfud", note: "knee"),
            let knee = own[.knee]
        else { return [] }
        var row = TargetRow(
            scenario: "P1",
            figure: "knee: viewers with loss ≤ 0.1 % and p99 ≤ 5 ms",
            bar: findings.rivals.map { "≥ 3 × \($0)" }.joined(separator: ", "),
            value: String(format: "%.0f", knee)
        )
        for rival in findings.rivals {
            let other = findings.last(.livestream, rival, note: "knee")?[.knee] ?? 0
            row.others[rival] = String(format: "%.0f (%.1f ×)", other, knee / max(1, other))
            row.isMet = knee >= 3 * other
        }
        guard let exponent = own[.exponent] else { return [row] }
        let fit = TargetRow(
            scenario: "P1",
            figure: "CPU grows with packets to the power of",
            bar: "1",
            value: String(format: "%.2f", exponent),
            isMet: exponent <= 1.05
        )
        return [row, fit]
    }

    private var overload: [TargetRow] {
        let note = "150 % of the knee"
        guard let found = findings.last(.livestream, "sfud", note: note),
            let rate = found[.packetsPerSecond],
            let knee = findings.last(.livestream, "sfud", note: "knee")?[.packetsPerSecond]
        else { return [] }
        let (audio, video) = (found[.audioLoss] ?? 0, found[.videoLoss] ?? 0)
        return [
            TargetRow(
                scenario: "P1, \(found.size)",
                figure: "delivered at \(note)",
                bar: "≥ 90 % of the knee's",
                value: String(format: "%.0f %%", 100 * rate / knee),
                isMet: rate >= 0.9 * knee
            ),
            TargetRow(
                scenario: "P1, \(found.size)",
                figure: "lost there, audio and video",
                bar: "audio last to suffer",
                value: String(format: "%.2f %%, %.2f %%", 100 * audio, 100 * video),
                isMet: audio <= video || audio < 0.001
            ),
        ]
    }

    private var delay: [TargetRow] { meetingDelay + livestreamDelay }

    private var meetingDelay: [TargetRow] {
        guard
            let found = findings.spread(.delay99, .meeting, "sfud", size: 25, profile: .gcm)
        else { return [] }
        return [
            TargetRow(
                scenario: "P3, 25",
                figure: "p99 in the daemon",
                bar: "≤ 1 ms",
                value: "≤ " + found.text("%.3f") + " ms",
                isMet: found.median <= 1
            )
        ]
    }

    private var livestreamDelay: [TargetRow] {
        let note = "70 % of the knee"
        guard let found = findings.last(.livestream, "sfud", note: note) else { return [] }
        let bars: [(Figure, Figure, String, Double)] = [
            (.delay50, .latency50, "p50", 0.1), (.delay99, .latency99, "p99", 0.5),
            (.delay999, .latency999, "p99.9", 2),
        ]
        return bars.map { inside, whole, name, most in
            let value = found[inside]
            let end = found[whole] ?? 0
            return TargetRow(
                scenario: "P1, \(found.size)",
                figure: "\(name) in the daemon at \(note) (end to end)",
                bar: "≤ \(most) ms",
                value: (value.map { String(format: "≤ %.3f ms", $0) } ?? "not told")
                    + String(format: " (%.2f ms)", end),
                isMet: value.map { $0 <= most }
            )
        }
    }

    private var burst: [TargetRow] {
        findings.sizes(.screen).map { size in
            var row = TargetRow(
                scenario: "P7, \(size)",
                figure: "most packets to one viewer in 1 ms; latency p99.9",
                bar: "",
                value: burst("sfud", size)
            )
            for system in findings.systems where system != "sfud" {
                row.others[system] = burst(system, size)
            }
            return row
        }
    }

    private func burst(_ system: String, _ size: Int) -> String {
        guard let burst = findings.spread(.burst, .screen, system, size: size),
            let tail = findings.spread(.latency999, .screen, system, size: size)
        else { return "" }
        return String(format: "%.0f; %.2f ms", burst.median, tail.median)
    }
}
