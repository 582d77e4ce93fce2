import Foundation

/// A run of the bench: its options, its recordings and what it has found so far.
final class Bench {
    let options: Options
    let progress = Progress()
    let library: Library
    private(set) var outcomes: [Outcome] = []
    /// Versions of what was measured, by system.
    var versions: [String: String] = [:]

    init(_ options: Options) throws {
        self.options = options
        let videos =
            Library.simulcast + (options.scenarios.contains(.screen) ? [Library.screen] : [])
        library = try Library(videos, progress: progress)
    }

    var seconds: Double { options.seconds ?? (options.isFull ? 10 : 4) }
    var profile: BenchProfile { options.profile ?? .gcm }
    /// How often what is compared with a floor is measured; the median counts.
    var rounds: Int { options.isFull ? 3 : 1 }

    /// sfud, then the floors, then the peers that were asked for.
    var systems: [any Adapter] { [SfudAdapter()] + floors + rivals }
    var floors: [any Adapter] { [FloorAdapter(segments: false), FloorAdapter(segments: true)] }
    var rivals: [any Adapter] { options.rivals.compactMap(Adapters.rival) }

    /// A trial as the options want it.
    func trial(_ rooms: [RoomPlan]) -> Trial {
        var trial = Trial(rooms: rooms)
        trial.profile = profile
        trial.workers = options.workers ?? 1
        trial.seconds = seconds
        trial.settleSeconds = options.isFull ? 4 : 2
        trial.settings.sockets = options.sockets
        trial.executable = options.executable
        return trial
    }

    /// Runs all scenarios in turn.
    func run() async throws {
        for scenario in options.scenarios {
            progress.prefix = "\(scenario.rawValue) "
            switch scenario {
            case .livestream: try await livestream()
            case .panel: try await panel()
            case .meeting: try await meeting()
            case .fours: try await manyRooms(.fours, members: 4, rooms: 25)
            case .pairs: try await manyRooms(.pairs, members: 2, rooms: 50)
            case .screen: try await screen()
            case .storm: try await storm()
            case .workers: try await workers()
            case .idle: try await idle()
            case .control: try await control()
            case .beside: try await beside()
            case .flood: try await flood()
            case .overload: try await overload()
            case .churn: try await churn()
            case .hostile: try await hostile()
            }
        }
    }

    /// Runs one trial and keeps what it found.
    @discardableResult
    func measure(
        _ scenario: ScenarioID,
        _ adapter: any Adapter,
        _ trial: Trial,
        size: Int,
        note: String = ""
    ) async throws -> Outcome {
        var trial = trial
        if adapter.name != "sfud" { trial.executable = nil }
        let result = try await trial.run(adapter, library, progress)
        var outcome = Outcome(scenario.rawValue, result, trial, size: size)
        outcome.note = note
        versions[result.name] = result.version
        keep(outcome)
        return outcome
    }

    /// The same load on all systems in turn, `rounds` times.
    func compare(
        _ scenario: ScenarioID,
        _ trial: Trial,
        size: Int,
        on systems: [any Adapter]? = nil
    ) async throws {
        for _ in 0..<rounds {
            for adapter in systems ?? self.systems {
                try await measure(scenario, adapter, trial, size: size)
            }
        }
    }

    func keep(_ outcome: Outcome) {
        outcomes.append(outcome)
        progress.clear()
        let line = options.printsJSON ? outcome.json : outcome.line
        FileHandle.standardOutput.write(Data("\(line)\n".utf8))
    }

    /// Whether a check failed anywhere.
    var hasFaults: Bool { outcomes.contains { !$0.faults.isEmpty } }
}
