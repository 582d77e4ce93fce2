import SFU
import Simulator

/// The command line of `sfu-simulate`.
struct SimulateOptions {
    private(set) var seeds: [UInt64] = []
    private(set) var plants: [PlantedBug] = []
    private(set) var length = World.Length.usual
    private(set) var hours: Double?
    private(set) var isRepeated = false
    private(set) var adversary = AdversaryChoice.some
    private(set) var onlyPlan: AdversaryPlan?
    /// Whether the first violation ends the run.
    private(set) var endsWhenFound = false
    private var lengthName = "usual"

    static let help = """
        usage: sfu-simulate [--seeds N] [--first N] [--seed N] [--hours H] [--length NAME]
                            [--twice] [--plant NAME|all] [--adversary never|some|always]
                            [--plan NAME] [--until-found]

        Lives through whole rooms in virtual time, one history for each seed, and looks at every
        step whether what must hold does.

          --seeds N       how many histories (1000)
          --first N       the seed of the first (1)
          --seed N        this one alone, and its trace
          --hours H       stop after so many virtual hours
          --length NAME   how long a history is: moment (10 s) or short (30 s), as CI has it,
                          usual (6 minutes) or day (24 hours)
          --twice         live through each twice: the traces must be the same
          --adversary A   whether each room has a participant with keys and bad intentions: never,
                          some (half of all seeds, as usual) or always
          --plan NAME     that is all that adversaries do
          --until-found   stop at the first seed that breaks a rule
          --plant NAME    plant a bug, and say which seed finds it; all: one after the other

        Exit status: 0 if all held (or every planted bug was found), 1 if not, 2 if misused.

        """

    /// Returns `nil`, with a message on standard output, for invalid options or a request for help.
    init?(_ arguments: ArraySlice<String>) {
        var count: UInt64 = 1_000
        var first: UInt64 = 1
        var rest = arguments
        while let name = rest.popFirst() {
            switch name {
            case "--help":
                print(Self.help)
                return nil
            case "--twice": isRepeated = true
            case "--until-found": endsWhenFound = true
            default:
                guard let value = rest.popFirst(), take(name, value, &count, &first) else {
                    print("sfu-simulate: \(name) is wrong or lacks a value; --help tells more")
                    return nil
                }
            }
        }
        seeds = Array(first..<first + count)
    }

    private mutating func take(
        _ name: String,
        _ value: String,
        _ count: inout UInt64,
        _ first: inout UInt64
    ) -> Bool {
        switch name {
        case "--seeds":
            count = UInt64(value) ?? 0
            return count > 0
        case "--first":
            first = UInt64(value) ?? 0
            return first > 0
        case "--seed":
            (count, first) = (1, UInt64(value) ?? 0)
            return first > 0
        case "--hours":
            hours = Double(value)
            return hours != nil
        case "--length":
            lengthName = value
            switch value {
            case "moment": length = .moment
            case "short": length = .short
            case "usual": length = .usual
            case "day": length = .day
            default: return false
            }
            return true
        case "--plant":
            plants =
                value == "all"
                ? PlantedBug.allCases : [PlantedBug(rawValue: value)].compactMap { $0 }
            return !plants.isEmpty
        case "--adversary":
            guard let choice = AdversaryChoice(rawValue: value) else { return false }
            adversary = choice
            return true
        case "--plan":
            onlyPlan = AdversaryPlan(rawValue: value)
            return onlyPlan != nil
        default: return false
        }
    }

    /// Makes the world of one seed.
    func world(
        seed: UInt64,
        identity: DTLSIdentity,
        plant: PlantedBug? = nil
    ) -> World {
        World(
            seed: seed,
            identity: identity,
            plant: plant,
            adversary: adversary,
            onlyPlan: onlyPlan
        )
    }

    /// Returns the command that replays one history.
    func command(for seed: UInt64) -> String {
        let length = lengthName == "usual" ? "" : " LENGTH=\(lengthName)"
        var flags: [String] = []
        if adversary != .some { flags.append("--adversary \(adversary.rawValue)") }
        if let onlyPlan { flags.append("--plan \(onlyPlan.rawValue)") }
        let further = flags.joined(separator: " ")
        return "make simulate SEED=\(seed)\(length)"
            + (flags.isEmpty ? "" : " SIMULATE_FLAGS=\"\(further)\"")
    }
}
