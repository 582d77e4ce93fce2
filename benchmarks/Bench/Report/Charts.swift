/// Charts of the report.
struct Charts {
    let findings: Findings

    /// File name, title and drawing of each chart that has data.
    var all: [(name: String, title: String, drawing: String)] {
        [cpu, latency, knee].compactMap { $0 }
    }

    /// Returns a color that is distinguishable with color blindness (Okabe and Ito).
    private func color(_ system: String) -> String {
        switch system {
        case "sfud": "#0072b2"
        case "floor-1": "#9a9a9a"
        case "floor-G": "#56b4e9"
        default:
            ["#d55e00", "#009e73", "#cc79a7"][(findings.rivals.firstIndex(of: system) ?? 0) % 3]
        }
    }

    private var cpu: (String, String, String)? {
        let scenarios: [ScenarioID] = [.livestream, .panel, .meeting, .fours, .pairs, .screen]
        let groups = scenarios.flatMap { scenario in
            findings.sizes(scenario).map { (scenario, $0) }
        }
        guard !groups.isEmpty else { return nil }
        let series = findings.systems.map { system in
            let points = groups.enumerated().compactMap { index, group in
                findings.spread(
                    .cpuMicroseconds,
                    group.0,
                    system,
                    size: group.1,
                    profile: .gcm
                ).map { (x: Double(index), y: $0.median) }
            }
            return Chart.Series(name: system, color: color(system), points: points)
        }
        let chart = Chart(
            title: "CPU a packet that a viewer received",
            subtitle: "User and system time, AEAD_AES_128_GCM; the floors send without crypto",
            xTitle: "scenario and number of viewers, listeners or members",
            yTitle: "microseconds",
            series: series.filter { !$0.points.isEmpty }
        )
        return ("cpu", chart.title, chart.bars(groups.map { "\($0.0.rawValue), \($0.1)" }))
    }

    private var latency: (String, String, String)? {
        let series = systemsWithLadder.flatMap { system in
            [(Figure.latency99, "p99", false), (.latency50, "p50", true)].map {
                figure,
                name,
                dashed in
                Chart.Series(
                    name: "\(system), \(name)",
                    color: color(system),
                    isDashed: dashed,
                    points: ladder(figure, system)
                )
            }
        }
        guard !series.isEmpty else { return nil }
        let chart = Chart(
            title: "P1: latency from publisher to viewer",
            subtitle: "All packets; a frame leaves for all viewers before the next does",
            xTitle: "viewers",
            yTitle: "milliseconds (logarithmic)",
            series: series,
            marks: [Chart.Mark(value: 5, text: "too much: p99 over 5 ms")],
            isLogarithmic: true
        )
        return ("latency", chart.title, chart.lines)
    }

    private var knee: (String, String, String)? {
        let series = systemsWithLadder.map { system in
            Chart.Series(
                name: system,
                color: color(system),
                points: ladder(.cpuShare, system).map { ($0.x, 100 * $0.y) }
            )
        }
        guard !series.isEmpty else { return nil }
        let knees = systemsWithLadder.compactMap { system in
            findings.last(.livestream, system, note: "knee")?[.knee].map {
                Chart.Mark(value: $0, text: "knee of \(system): \(Int($0))", isUpright: true)
            }
        }
        let chart = Chart(
            title: "P1: CPU of the SFU, up to the first number of viewers that is too much",
            subtitle: "User and system time; the knee has loss ≤ 0.1 % and p99 ≤ 5 ms",
            xTitle: "viewers",
            yTitle: "percent of a core",
            series: series,
            marks: knees
        )
        return ("knee", chart.title, chart.lines)
    }

    private var systemsWithLadder: [String] {
        findings.systems.filter { !ladder(.cpuShare, $0).isEmpty }
    }

    /// Returns a figure by number of viewers, from the last try of each size.
    private func ladder(_ figure: Figure, _ system: String) -> [(x: Double, y: Double)] {
        let rungs = findings.outcomes.filter {
            $0.scenario == ScenarioID.livestream.rawValue && $0.system == system
                && $0.note == "ladder"
        }
        return Set(rungs.map(\.size)).sorted().compactMap { size in
            rungs.last { $0.size == size }?[figure].map { (Double(size), $0) }
        }
    }
}
