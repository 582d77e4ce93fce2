import JSON
import RTP
import WorkerInterface

/// Nodes whose datagrams come through to this one, and its own to them.
///
/// Follows the link thread, which tells changes alone. So nothing is forgotten with a node that is
/// lost: it may be heard all the time.
struct Hearing {
    private enum State: Equatable {
        /// Its media is wanted, and it was never heard; that counts as silence from this time on.
        case expected(until: Instant)
        case heard
        case lost
        /// It is heard again, and counts as heard from this time on.
        case returning(until: Instant)

        var end: Instant? {
            switch self {
            case .expected(let until), .returning(let until): until
            case .heard, .lost: nil
            }
        }
    }

    private var states: [String: State] = [:]

    /// Time for which a node has to be heard again before its media comes directly.
    static let returnMilliseconds: Int64 = 5_000
    /// Time that the first datagrams of a node have.
    static let firstMilliseconds: Int64 = 2_000

    /// Whether datagrams come through now.
    func isHeard(_ node: String) -> Bool {
        switch states[node] {
        case .heard, .returning: true
        case .expected, .lost, nil: false
        }
    }

    /// Whether media is to come directly from a node.
    func hears(_ node: String) -> Bool {
        switch states[node] {
        case .heard, .expected, nil: true
        case .returning, .lost: false
        }
    }

    /// Time of the next `expire` that changes something.
    var deadline: Instant? { states.values.compactMap(\.end).min() }

    /// Notes that media of a node is wanted.
    mutating func expect(_ node: String, at now: Instant) {
        guard states[node] == nil else { return }
        states[node] = .expected(until: now.advanced(milliseconds: Self.firstMilliseconds))
    }

    mutating func note(_ node: String, isHeard: Bool, at now: Instant) {
        switch (states[node], isHeard) {
        case (nil, true), (.expected, true): states[node] = .heard
        case (.lost, true):
            let until = now.advanced(milliseconds: Self.returnMilliseconds)
            states[node] = .returning(until: until)
        case (.heard, false), (.returning, false): states[node] = .lost
        case (.heard, true), (.returning, true), (.lost, false), (.expected, false), (nil, false):
            break
        }
    }

    /// Lets states end whose time is over.
    mutating func expire(at now: Instant) {
        for (node, state) in states {
            switch state {
            case .expected(let until) where until <= now: states[node] = .lost
            case .returning(let until) where until <= now: states[node] = .heard
            case .expected, .returning, .heard, .lost: break
            }
        }
    }
}

/// Message of a node to a home: whose datagrams do not come through to it, of the nodes whose media
/// it should get.
struct UnheardNodes: Codable {
    var unheard: [String]

    /// Nodes of a cluster, and bytes of a node's name.
    static let limit = 64

    var isValid: Bool {
        unheard.count <= Self.limit && unheard.allSatisfy { $0.utf8.count <= Self.limit }
    }
}

// Reports to other homes on the nodes that are heard here.
extension ControlPlane {
    /// Tells each home with participants here whose media does not come through, where that has
    /// changed.
    mutating func tellHearing() {
        guard let places else { return }
        let unheard = places.routes.origins.filter { !places.hearing.hears($0) }
        for (home, known) in places.guests.homes.sorted(by: { $0.key < $1.key })
        where known.unheard != unheard {
            self.places?.guests.homes[home]?.unheard = unheard
            let message = UnheardNodes(unheard: unheard.sorted())
            output.append(.place(node: home, asHome: false, JSON.compact(message)))
        }
    }

    /// Follows what has been heard, or not, for long enough.
    mutating func expireHearing(at now: Instant) {
        guard let due = places?.hearing.deadline, due <= now else { return }
        places?.hearing.expire(at: now)
        tellHearing()
    }
}
