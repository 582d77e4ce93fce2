/// Scenarios, by their names in reports.
enum ScenarioID: String, CaseIterable, Sendable {
    case livestream = "P1"
    case panel = "P2"
    case meeting = "P3"
    case fours = "P4"
    case pairs = "P5"
    case screen = "P7"
    case storm = "P10"
    case workers = "P12"
    case idle = "P14"
    case lives = "LIVES"
    case control = "CONTROL"
    case crowd = "CROWD"
    case beside = "BESIDE"
    case flood = "FLOOD"
    case overload = "OVERLOAD"
    case churn = "CHURN"
    case hostile = "HOSTILE"

    /// Scenarios that run if none is named.
    ///
    /// These are the ordinary loads; provoked failures and what has no media must be named.
    static let usual = allCases.filter { !named.contains($0) }

    private static let named: Set<Self> = [.lives, .crowd, .flood, .overload, .churn, .hostile]

    var summary: String {
        switch self {
        case .livestream: "one publisher to more and more viewers, until it is too much"
        case .panel: "10 speakers to many listeners, audio only"
        case .meeting: "everybody to everybody, simulcast, nine slots each"
        case .fours: "rooms of four"
        case .pairs: "rooms of two"
        case .screen: "a screen share of 5 Mbit/s with keyframes of 60 packets"
        case .storm: "500 joins at once beside a running room, then 50 a second"
        case .workers: "one room on one worker, then on two"
        case .idle: "2,000 connected and nothing sent: CPU and memory"
        case .lives: "the daemon is upgraded, and killed, while one publisher has 200 viewers"
        case .control: "50 viewers, alone and beside 5,000 calls a second about another room"
        case .crowd: "a room of 10,000: 1,000 messages a second to all, beside joins"
        case .beside: "ten rooms of four, alone and on the worker of a room of 100"
        case .flood: "100 join through forged hellos and bad checks; a room of four plays beside"
        case .overload: "one publisher to 150 % of the viewers that it can have, then to half"
        case .hostile: "people with keys who do what they should not, beside a room of four"
        case .churn: "rooms made, used for a second and closed: what is left of them"
        }
    }
}
