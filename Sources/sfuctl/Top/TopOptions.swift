import Contract

/// Options of `sfuctl top`.
struct TopOptions: Equatable {
    /// Empty for all rooms.
    var rooms: [RoomID] = []
    var sort = TopSort.loss
    /// Whether to print the figures once rather than show them until the user quits.
    var isOnce = false
}

/// Order of the rows; the worst or largest come first.
enum TopSort: String, CaseIterable {
    case name, `in`, out, loss, rtt, jitter, freezes

    /// Key that selects it while the figures are shown.
    var key: Character {
        switch self {
        case .name: "n"
        case .in: "i"
        case .out: "o"
        case .loss: "l"
        case .rtt: "t"
        case .jitter: "j"
        case .freezes: "f"
        }
    }
}
