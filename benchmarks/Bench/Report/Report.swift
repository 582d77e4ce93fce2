import Foundation

/// Report of a run: a table of targets, charts, and all figures.
struct Report {
    private let options: Options
    private let findings: Findings
    private let versions: [String: String]

    init(_ bench: Bench) {
        options = bench.options
        findings = Findings(outcomes: bench.outcomes)
        versions = bench.versions
    }

    /// Writes `report.md`, and the charts and `figures.jsonl` in `report/`.
    ///
    /// - Throws: Errors of the file system.
    func write(to folder: String) throws {
        let charts = "\(folder)/report"
        try FileManager.default.createDirectory(
            atPath: charts,
            withIntermediateDirectories: true
        )
        func write(_ text: String, _ path: String) throws {
            try Data(text.utf8).write(to: URL(filePath: path), options: .atomic)
        }
        let drawn = Charts(findings: findings).all
        for (name, _, drawing) in drawn { try write(drawing, "\(charts)/\(name).svg") }
        let lines = findings.outcomes.map { $0.json + "\n" }
        try write(lines.joined(), "\(charts)/figures.jsonl")
        let pictures = drawn.map { name, title, _ in "![\(title)](report/\(name).svg)\n" }
        let parts = [head, bars, pictures.joined(separator: "\n"), trials, faults]
        try write(parts.filter { !$0.isEmpty }.joined(separator: "\n"), "\(folder)/report.md")
    }

    private var head: String {
        let others = versions.keys.sorted().filter { !$0.hasPrefix("floor") }
        let systems = others.compactMap { versions[$0] }.joined(separator: ", ")
        let date = ISO8601DateFormatter.string(
            from: .now,
            timeZone: .gmt,
            formatOptions: [.withFullDate]
        )
        let rows = [
            ("date", date), ("commit", Conditions.commit() ?? "unknown"), ("measured", systems),
            ("machine", "\(Conditions.processor()), \(Conditions.memory())"),
            ("kernel", Conditions.kernel()),
            ("load average at the end", Conditions.load()),
            ("command", "sfu-bench " + CommandLine.arguments.dropFirst().joined(separator: " ")),
        ]
        let table = rows.map { "| \($0) | \($1) |" }.joined(separator: "\n")
        return """
            # What sfud costs

            Made by `make bench`; [README.md](README.md) says how to read it.

            | | |
            | --- | --- |
            \(table)

            """
    }

    private var bars: String {
        let others = findings.systems.filter { $0 != "sfud" }
        let header = ["scenario", "figure", "to reach", "sfud"] + others + ["reached"]
        let rows = Targets(findings: findings).rows.map { row in
            let reached = row.isMet.map { $0 ? "yes" : "**no**" } ?? ""
            return [row.scenario, row.figure, row.bar, row.value]
                + others.map { row.others[$0] ?? "" } + [reached]
        }
        guard !rows.isEmpty else { return "" }
        return """
            ## What was to be reached

            Medians of \(findings.rounds) rounds, with the least and the most in brackets. After
            another system's own figure comes sfud's as a multiple of it, round by round.


            """ + Self.table(header, rows)
    }

    /// Bars in words, for a terminal.
    var summary: String { Self.summary(of: findings) }

    /// Returns in words which bars are reached and which are missed.
    static func summary(of findings: Findings) -> String {
        let rows = Targets(findings: findings).rows.filter { $0.isMet != nil }
        guard !rows.isEmpty else { return "" }
        let lines = rows.map { row in
            let others = findings.systems.compactMap { system in
                row.others[system].map { "\(system) \($0)" }
            }
            let told = ([row.value] + others).joined(separator: "; ")
            let verdict = row.isMet == true ? "reached" : "MISSED "
            return "  \(verdict)  \(row.scenario): \(row.figure): \(told); to reach: \(row.bar)\n"
        }
        let reached = rows.count { $0.isMet == true }
        let rounds = findings.rounds == 1 ? "one round" : "\(findings.rounds) rounds"
        return "\nBars, by the median of \(rounds) (least to most):\n\(lines.joined())"
            + "\(reached) of \(rows.count) bars reached.\n"
    }

    private var trials: String {
        let figures: [(Figure, String, String, Double)] = [
            (.packetsPerSecond, "packets/s", "%.0f", 1), (.meanBytes, "bytes", "%.0f", 1),
            (.cpuMicroseconds, "µs/packet", "%.2f", 1), (.cpuShare, "CPU %", "%.0f", 100),
            (.clientShare, "client %", "%.0f", 100), (.audioLoss, "audio lost %", "%.3f", 100),
            (.videoLoss, "video lost %", "%.3f", 100), (.latency50, "p50 ms", "%.2f", 1),
            (.latency99, "p99 ms", "%.2f", 1), (.latency999, "p99.9 ms", "%.2f", 1),
            (.framesDecoded, "decoded", "%.0f", 1),
        ]
        let rows = findings.outcomes.filter { $0[.cpuMicroseconds] != nil }.map { outcome in
            [
                outcome.scenario, outcome.system, "\(outcome.size)", outcome.note,
                outcome.profile.rawValue, "\(outcome.workers)", "\(outcome.round)",
            ]
                + figures.map { figure, _, format, factor in
                    outcome[figure].map { String(format: format, $0 * factor) } ?? ""
                }
        }
        guard !rows.isEmpty else { return "" }
        let header =
            ["scenario", "system", "size", "", "SRTP", "workers", "round"] + figures.map(\.1)
        return "## All loads\n\n" + Self.table(header, rows)
    }

    private var faults: String {
        let parts = [
            list("Failed checks", of: \.faults), list("Warnings", of: \.warnings),
        ]
        return parts.filter { !$0.isEmpty }.joined(separator: "\n")
    }

    private func list(_ title: String, of path: KeyPath<Outcome, [String]>) -> String {
        var lines: [String] = []
        for outcome in findings.outcomes {
            let place = "\(outcome.scenario) \(outcome.system) \(outcome.size) \(outcome.note)"
            for line in outcome[keyPath: path] { lines.append("- \(place): \(line)") }
        }
        return lines.isEmpty ? "" : "## \(title)\n\n\(lines.joined(separator: "\n"))\n"
    }

    private static func table(_ header: [String], _ rows: [[String]]) -> String {
        let rule = header.map { _ in "---" }
        return ([header, rule] + rows).map { "| \($0.joined(separator: " | ")) |\n" }.joined()
    }
}
