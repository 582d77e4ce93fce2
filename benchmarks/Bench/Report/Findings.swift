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

    /// Returns the median of all rounds, or `nil` if there was none.
    func value(
        _ figure: Figure,
        _ scenario: ScenarioID,
        _ system: String,
        size: Int? = nil,
        note: String? = "",
        profile: BenchProfile? = nil
    ) -> Double? {
        let found = outcomes.filter { outcome in
            outcome.scenario == scenario.rawValue && outcome.system == system
                && (size == nil || outcome.size == size) && (note == nil || outcome.note == note)
                && (profile == nil || outcome.profile == profile)
        }
        let values = found.compactMap { $0[figure] }.sorted()
        return values.isEmpty ? nil : values[values.count / 2]
    }

    /// Returns the sizes at which a scenario was compared with the floors.
    func sizes(_ scenario: ScenarioID) -> [Int] {
        let found = outcomes.filter {
            $0.scenario == scenario.rawValue && $0.system == "sfud" && $0.note.isEmpty
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
