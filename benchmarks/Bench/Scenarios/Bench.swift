import Foundation

/// A run of the bench: options, recordings and outcomes.
final class Bench {
    let options: Options
    let progress = Progress()
    let library: Library
    private(set) var outcomes: [Outcome] = []
    /// Versions of the measured systems, by system.
    var versions: [String: String] = [:]

    init(_ options: Options) throws {
        self.options = options
        let videos =
            Library.simulcast + (options.scenarios.contains(.screen) ? [Library.screen] : [])
        library = try Library(videos, progress: progress)
    }

    var seconds: Double { options.seconds ?? (options.isFull ? 10 : 4) }
    var profile: BenchProfile { options.profile ?? .gcm }
    /// Number of the scenario's current round, from 1 on.
    private(set) var round = 1

    /// sfud, the floors, and the other SFUs given in the options.
    var systems: [any Adapter] { [SfudAdapter()] + floors + rivals }
    var floors: [any Adapter] { [FloorAdapter(segments: false), FloorAdapter(segments: true)] }
    var rivals: [any Adapter] { options.rivals.compactMap(Adapters.rival) }

    /// Creates a trial according to the options.
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

    /// Runs all scenarios in turn, each as often as the options say.
    func run() async throws {
        for scenario in options.scenarios {
            let rounds = ScenarioID.usual.contains(scenario) ? options.rounds : 1
            for number in 1...rounds {
                round = number
                let of = rounds > 1 ? "\(number) of \(rounds) " : ""
                progress.prefix = "\(scenario.rawValue) \(of)"
                try await run(scenario)
            }
        }
    }

    /// Runs one scenario once.
    private func run(_ scenario: ScenarioID) async throws {
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
        case .lives: try await lives()
        case .control: try await control()
        case .crowd: try await crowd()
        case .beside: try await beside()
        case .flood: try await flood()
        case .overload: try await overload()
        case .churn: try await churn()
        case .hostile: try await hostile()
        }
    }

    /// Runs one trial and keeps its outcome.
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

    /// Runs the same load on all systems in turn.
    func compare(
        _ scenario: ScenarioID,
        _ trial: Trial,
        size: Int,
        on systems: [any Adapter]? = nil
    ) async throws {
        for adapter in systems ?? self.systems {
            try await measure(scenario, adapter, trial, size: size)
        }
    }

    func keep(_ outcome: Outcome) {
        var outcome = outcome
        outcome.round = round
        outcomes.append(outcome)
        progress.clear()
        let line = options.printsJSON ? outcome.json : outcome.line
        FileHandle.standardOutput.write(Data("\(line)\n".utf8))
    }

    /// Loads at which a check of sfud failed.
    var failures: [Outcome] { outcomes.filter { $0.system == "sfud" && !$0.faults.isEmpty } }
}
