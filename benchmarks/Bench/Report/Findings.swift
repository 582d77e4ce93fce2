import Foundation

/// Values of one figure in all rounds of a scenario.
struct Spread {
    private let ordered: [Double]

    /// Returns `nil` without values.
    init?(_ values: [Double]) {
        guard !values.isEmpty else { return nil }
        ordered = values.sorted()
    }

    var median: Double { ordered[ordered.count / 2] }
    var least: Double { ordered[0] }
    var most: Double { ordered[ordered.count - 1] }

    /// Returns the median, and in brackets the least and the most if they are not the same.
    func text(_ format: String, by factor: Double = 1) -> String {
        let parts = [median, least, most].map { String(format: format, $0 * factor) }
        return parts[1] == parts[2] ? parts[0] : "\(parts[0]) (\(parts[1]) to \(parts[2]))"
    }
}

/// Queries over the outcomes for a report.
struct Findings {
    let outcomes: [Outcome]

    /// Systems with outcomes: sfud, then the floors, then other SFUs.
    var systems: [String] {
        let names = Set(outcomes.map(\.system))
        let known = ["sfud", "floor-1", "floor-G"]
        return known.filter(names.contains) + names.subtracting(known).sorted()
    }

    /// SFUs other than sfud.
    var rivals: [String] { systems.filter { $0 != "sfud" && !$0.hasPrefix("floor") } }

    /// Greatest number of rounds that a scenario ran.
    var rounds: Int { outcomes.map(\.round).max() ?? 0 }

    /// Returns a figure in all rounds, or `nil` if there was none.
    func spread(
        _ figure: Figure,
        _ scenario: ScenarioID,
        _ system: String,
        size: Int? = nil,
        note: String? = "",
        profile: BenchProfile? = nil
    ) -> Spread? {
        let found = matching(scenario, system, size: size, note: note, profile: profile)
        return Spread(found.compactMap { $0[figure] })
    }

    /// Returns sfud's figure as a multiple of another system's, round by round, so that what
    /// disturbs a round disturbs both.
    ///
    /// Floors have no crypto, so they are compared with either profile.
    func ratio(
        _ figure: Figure,
        _ scenario: ScenarioID,
        to other: String,
        size: Int,
        profile: BenchProfile
    ) -> Spread? {
        let others = matching(scenario, other, size: size, note: "", profile: nil)
        let own = matching(scenario, "sfud", size: size, note: "", profile: profile)
        return Spread(
            own.compactMap { one in
                guard let value = one[figure],
                    let beside = others.first(where: { $0.round == one.round })?[figure],
                    beside > 0
                else { return nil }
                return value / beside
            }
        )
    }

    private func matching(
        _ scenario: ScenarioID,
        _ system: String,
        size: Int?,
        note: String?,
        profile: BenchProfile?
    ) -> [Outcome] {
        outcomes.filter { outcome in
            outcome.scenario == scenario.rawValue && outcome.system == system
                && (size == nil || outcome.size == size) && (note == nil || outcome.note == note)
                && (profile == nil || outcome.profile == profile)
        }
    }

    /// Returns the sizes at which a scenario was compared with the floors.
    func sizes(_ scenario: ScenarioID) -> [Int] {
        let found = outcomes.filter {
            $0.scenario == scenario.rawValue && $0.system == "floor-1" && $0.note.isEmpty
        }
        return Set(found.map(\.size)).sorted()
    }

    /// Returns the last outcome with that note.
    func last(_ scenario: ScenarioID, _ system: String, note: String) -> Outcome? {
        outcomes.last {
            $0.scenario == scenario.rawValue && $0.system == system && $0.note == note
        }
    }
}
