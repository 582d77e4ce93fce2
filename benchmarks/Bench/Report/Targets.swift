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
        cpu + meetingDelay + knee + overload + delay + burst + workers + storm + idle + control
    }

    /// Highest allowed ratios of sfud's CPU cost to those of other systems.
    private struct Ratio {
        var scenario: ScenarioID
        var profile: BenchProfile
        /// Highest ratio, by system.
        var most: [String: Double]
        /// Highest ratio to any other SFU.
        var rival: Double?
    }

    private static let ratios = [
        Ratio(scenario: .livestream, profile: .gcm, most: ["floor-1": 0.8]),
        Ratio(scenario: .livestream, profile: .cm, most: [:]),
        Ratio(scenario: .panel, profile: .gcm, most: ["floor-1": 1.1]),
        Ratio(scenario: .meeting, profile: .gcm, most: ["floor-1": 0.8], rival: 0.3),
        Ratio(scenario: .meeting, profile: .cm, most: [:]),
        Ratio(scenario: .fours, profile: .gcm, most: ["floor-1": 0.9], rival: 0.3),
        Ratio(scenario: .pairs, profile: .gcm, most: ["floor-1": 1.15], rival: 0.3),
        Ratio(scenario: .screen, profile: .gcm, most: [:]),
    ]

    /// CPU a packet compared with the floors and the other SFUs.
    private var cpu: [TargetRow] {
        Self.ratios.flatMap { ratio in
            findings.sizes(ratio.scenario).compactMap { cpu(ratio, size: $0) }
        }
    }

    private func cpu(_ ratio: Ratio, size: Int) -> TargetRow? {
        func values(_ system: String, _ profile: BenchProfile?) -> [Double] {
            findings.values(
                .cpuMicroseconds,
                ratio.scenario,
                system,
                size: size,
                profile: profile
            )
        }
        let own = values("sfud", ratio.profile)
        guard let median = own.median else { return nil }
        var most = ratio.most
        if let rival = ratio.rival { for name in findings.rivals { most[name] = rival } }
        var row = TargetRow(
            scenario: "\(ratio.scenario.rawValue), \(size)",
            figure: "CPU a packet, \(ratio.profile.rawValue)",
            bar: most.sorted { $0.key < $1.key }.map { "≤ \($0.value) × \($0.key)" }
                .joined(separator: ", "),
            value: String(format: "%.2f µs", median) + own.spread
        )
        for system in findings.systems where system != "sfud" {
            // Floors have no crypto, so they are compared with either profile.
            let theirs = values(system, nil)
            guard let other = theirs.median, let times = own.medianRatio(to: theirs) else {
                continue
            }
            row.others[system] =
                String(format: "%.2f µs", other) + theirs.spread
                + String(format: ", %.2f ×", times)
            if let most = most[system] { row.isMet = (row.isMet ?? true) && times <= most }
        }
        return row
    }

    private var knee: [TargetRow] {
        guard let own = findings.median(.livestream, "sfud", note: "knee"),
            let knee = own[.knee]
        else { return [] }
        var row = TargetRow(
            scenario: "P1",
            figure: "knee: viewers with loss ≤ 0.1 % and p99 ≤ 5 ms",
            bar: findings.rivals.map { "≥ 3 × \($0)" }.joined(separator: ", "),
            value: String(format: "%.0f", knee)
        )
        for rival in findings.rivals {
            let other = findings.median(.livestream, rival, note: "knee")?[.knee] ?? 0
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
        guard let found = findings.median(.livestream, "sfud", note: note),
            let rate = found[.packetsPerSecond],
            let knee = findings.median(.livestream, "sfud", note: "knee")?[.packetsPerSecond]
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

    /// Delay of a meeting in the daemon, where batches are small.
    private var meetingDelay: [TargetRow] {
        findings.sizes(.meeting).compactMap { size in
            let tails = findings.values(.delay99, .meeting, "sfud", size: size, profile: .gcm)
            let middle = findings.value(.delay50, .meeting, "sfud", size: size, profile: .gcm)
            guard let tail = tails.median, let middle else { return nil }
            return TargetRow(
                scenario: "P3, \(size)",
                figure: "p50 and p99 in the daemon",
                bar: size == 25 ? "p99 ≤ 1 ms" : "",
                value: String(format: "≤ %.3f ms, ≤ %.3f ms", middle, tail) + tails.spread,
                isMet: size == 25 ? tail <= 1 : nil
            )
        }
    }

    private var delay: [TargetRow] {
        let note = "70 % of the knee"
        guard let found = findings.median(.livestream, "sfud", note: note) else { return [] }
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
        guard let burst = findings.value(.burst, .screen, system, size: size),
            let tail = findings.value(.latency999, .screen, system, size: size)
        else { return "" }
        return String(format: "%.0f; %.2f ms", burst, tail)
    }
}
