/// An invalid command line, with the reason in one line.
struct UsageError: Error { var message: String }

/// Command-line options.
struct Options: Sendable {
    /// Scenarios in the order in which they run.
    var scenarios: [ScenarioID] = []
    /// Number of viewers, listeners or members, instead of the scenario's own.
    var size: Int?
    /// Seconds to measure each load.
    var seconds: Double?
    var profile: BenchProfile?
    var workers: Int?
    /// Other SFUs that carry the same loads.
    var rivals: [String] = []
    var executable: String?
    var isFull = false
    /// Rounds of each scenario, apart from those that have to be named.
    var rounds = 3
    /// Folder for `report.md` and `report/`.
    var report: String?
    /// Whether JSON lines are printed instead of text.
    var printsJSON = false
    var sockets = 1
    var wantsHelp = false

    static let help = """
        sfu-bench: what an SFU costs, with real clients on loopback, beside the machine's floors

        sfu-bench [SCENARIO]... [OPTION]...
        sfu-bench load [OPTION]...       one room on an sfud that runs: sfu-bench load --help

        \(ScenarioID.allCases.map { "  \($0.rawValue.lowercased().padded(7)) \($0.summary)" }
            .joined(separator: "\n"))

          --viewers N       this many viewers, listeners or members, and no other sizes
          --seconds N       measure each load for so long, 1 to 600 (default 4; 10 with --full)
          --profile P       SRTP by gcm (AEAD_AES_128_GCM) or by cm (AES_CM_128_HMAC_SHA1_80);
                            else gcm, and cm where the bars have one for it
          --workers N       workers of sfud, 1 to 64 (default 1)
          --against NAME    also measure \(Adapters.rivals.joined(separator: ", ")); may be repeated
          --sfud PATH       this sfud (default: the one beside sfu-bench)
          --rounds N        run each scenario N times, 1 to 20 (default 3; those that have
                            to be named run once)
          --full            measure for longer
          --report DIR      write DIR/report.md, its charts and its figures
          --json            print JSON lines
          --sockets N       spread the clients over N sockets, 1 to 1024 (default 1)
          --help            print this

        Without a scenario, all but LIVES, CROWD, FLOOD, OVERLOAD, CHURN and HOSTILE. In CROWD,
        FLOOD, OVERLOAD and CHURN --viewers is the number of people, of joins, of viewers at
        the knee, and of rooms. The floors are processes of sfu-bench that send the same
        datagrams on: floor-1 with one sendto each, floor-G in the longest GSO runs.
        At the end it says which bars were reached, by the median of the rounds.
        Exit status: 0 done, whether or not all bars were reached, 1 a check failed, 2 wrong
        command line, 69 an SFU could not be driven, 130 interrupted.
        """

    /// Parses the arguments after the program's name.
    init(_ arguments: [String]) throws(UsageError) {
        var rest = arguments[...]
        while let argument = rest.popFirst() {
            switch argument {
            case "--help", "-h": wantsHelp = true
            case "--full": isFull = true
            case "--json": printsJSON = true
            case _ where argument.hasPrefix("-"): try read(argument, rest.popFirst())
            default:
                guard let scenario = ScenarioID(rawValue: argument.uppercased()) else {
                    throw UsageError(message: "no such scenario: \(argument)")
                }
                scenarios.append(scenario)
            }
        }
        if scenarios.isEmpty { scenarios = ScenarioID.usual }
    }

    private mutating func read(_ flag: String, _ value: String?) throws(UsageError) {
        switch flag {
        case "--viewers": size = try CommandLineValue.number(flag, value, 1...100_000)
        case "--seconds": seconds = Double(try CommandLineValue.number(flag, value, 1...600))
        case "--profile": profile = try CommandLineValue.profile(flag, value)
        case "--workers": workers = try CommandLineValue.number(flag, value, 1...64)
        case "--rounds": rounds = try CommandLineValue.number(flag, value, 1...20)
        case "--against":
            let name = try CommandLineValue.text(flag, value)
            guard Adapters.rivals.contains(name) else {
                throw UsageError(message: "--against knows no \(name)")
            }
            rivals.append(name)
        case "--sfud": executable = try CommandLineValue.text(flag, value)
        case "--report": report = try CommandLineValue.text(flag, value)
        case "--sockets": sockets = try CommandLineValue.number(flag, value, 1...1_024)
        default: throw UsageError(message: "no such option: \(flag)")
        }
    }
}

/// Parsers of option values.
enum CommandLineValue {
    static func text(_ flag: String, _ value: String?) throws(UsageError) -> String {
        guard let value else { throw UsageError(message: "\(flag) needs a value") }
        return value
    }

    static func number(
        _ flag: String,
        _ value: String?,
        _ range: ClosedRange<Int>
    ) throws(UsageError) -> Int {
        guard let number = Int(try text(flag, value)), range.contains(number) else {
            throw UsageError(
                message: "\(flag) must be \(range.lowerBound) to \(range.upperBound)"
            )
        }
        return number
    }

    static func profile(_ flag: String, _ value: String?) throws(UsageError) -> BenchProfile {
        guard let profile = BenchProfile(rawValue: try text(flag, value)) else {
            throw UsageError(message: "\(flag) must be gcm or cm")
        }
        return profile
    }
}

extension String {
    /// Returns the string padded with spaces to at least `width`.
    func padded(_ width: Int) -> String {
        self + String(repeating: " ", count: max(0, width - count))
    }
}
