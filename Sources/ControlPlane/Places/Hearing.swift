import JSON
import RTP
import WorkerInterface

/// Nodes whose datagrams come through to this one, and its own to them.
struct Hearing {
    private var heard: Set<String> = []
    /// Nodes that were heard once, and are not now.
    private var lost: Set<String> = []
    /// Nodes that are heard again, with the times from which they count as heard.
    private var returning: [String: Instant] = [:]

    /// Time for which a node has to be heard again before its media comes directly.
    static let returnMilliseconds: Int64 = 5_000

    /// Whether datagrams come through now.
    func isHeard(_ node: String) -> Bool { heard.contains(node) }

    /// Whether media is to come directly from a node.
    func hears(_ node: String) -> Bool { heard.contains(node) && returning[node] == nil }

    /// Time of the next `expire` that changes something.
    var deadline: Instant? { returning.values.min() }

    mutating func note(_ node: String, isHeard: Bool, at now: Instant) {
        if isHeard {
            heard.insert(node)
            guard lost.remove(node) != nil else { return }
            returning[node] = now.advanced(milliseconds: Self.returnMilliseconds)
        } else if heard.remove(node) != nil {
            lost.insert(node)
            returning[node] = nil
        }
    }

    /// Counts those as heard again that have been for long enough.
    mutating func expire(at now: Instant) { returning = returning.filter { $0.value > now } }
}

/// Message of a node to a home: whose datagrams do not come through to it, of the nodes whose media
/// it should get.
struct UnheardNodes: Codable {
    var unheard: [String]

    static let limit = 64

    var isValid: Bool { unheard.count <= Self.limit }
}

// What this node hears, for other homes.
extension ControlPlane {
    /// Tells each home with participants here whose media does not come through, where that has
    /// changed.
    mutating func tellHearing(at now: Instant) {
        guard let places else { return }
        let unheard = places.routes.origins.filter { !places.hearing.hears($0) }
        for (home, known) in places.guests.homes.sorted(by: { $0.key < $1.key })
        where known.unheard != unheard {
            self.places?.guests.homes[home]?.unheard = unheard
            let message = UnheardNodes(unheard: unheard.sorted())
            output.append(.place(node: home, asHome: false, JSON.compact(message)))
        }
    }

    /// Counts nodes as heard again that have been for long enough.
    mutating func expireHearing(at now: Instant) {
        guard let due = places?.hearing.deadline, due <= now else { return }
        places?.hearing.expire(at: now)
        tellHearing(at: now)
    }
}
