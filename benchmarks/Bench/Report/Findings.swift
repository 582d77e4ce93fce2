import Foundation

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
        values(figure, scenario, system, size: size, note: note, profile: profile).median
    }

    /// Returns the values of all rounds, in their order.
    func values(
        _ figure: Figure,
        _ scenario: ScenarioID,
        _ system: String,
        size: Int? = nil,
        note: String? = "",
        profile: BenchProfile? = nil
    ) -> [Double] {
        let found = outcomes.filter { outcome in
            outcome.scenario == scenario.rawValue && outcome.system == system
                && (size == nil || outcome.size == size) && (note == nil || outcome.note == note)
                && (profile == nil || outcome.profile == profile)
        }
        return found.compactMap { $0[figure] }
    }

    /// Returns the sizes at which a scenario was compared with the floors.
    func sizes(_ scenario: ScenarioID) -> [Int] {
        let found = outcomes.filter {
            $0.scenario == scenario.rawValue && $0.system == "sfud" && $0.note.isEmpty
        }
        return Set(found.map(\.size)).sorted()
    }

    /// Returns the outcomes with that note as one, with the median of each figure.
    func median(_ scenario: ScenarioID, _ system: String, note: String) -> Outcome? {
        let found = outcomes.filter {
            $0.scenario == scenario.rawValue && $0.system == system && $0.note == note
        }
        guard var outcome = found.last else { return nil }
        for figure in outcome.figures.keys {
            outcome[figure] = found.compactMap { $0[figure] }.median
        }
        return outcome
    }
}

extension [Double] {
    /// The middle one by size, the upper one of two; `nil` if there is none.
    var median: Double? { isEmpty ? nil : sorted()[count / 2] }

    /// The least and the most in words, with two digits; empty for a single one.
    var spread: String {
        guard count > 1, let least = self.min(), let most = self.max() else { return "" }
        return String(format: " (%.2f to %.2f)", least, most)
    }

    /// Returns the median of the ratios to the values of the same rounds.
    func medianRatio(to others: Self) -> Double? {
        guard count == others.count else {
            return median.flatMap { own in others.median.map { own / $0 } }
        }
        return zip(self, others).map { $0 / $1 }.median
    }
}
