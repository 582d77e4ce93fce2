package import Contract
package import RTP

extension Cluster {
    /// Returns what `node.list` shows.
    package func list(at now: Instant) -> NodeList.Result {
        let nodes = members.table.sorted { $0.key < $1.key }.map { name, member in
            let link: LinkCondition =
                switch peers[name]?.link {
                case nil where name == setup.name: .own
                case .down where name == setup.name: .own
                case nil, .down: .none
                case .connecting: .connecting
                case .up: .up
                }
            return NodeInfo(
                node: name.rawValue,
                state: member.isLost ? .lost : NodeCondition(member.record.state),
                region: member.record.region,
                load: member.record.load,
                rooms: member.record.rooms,
                participants: member.record.participants,
                address: member.record.link,
                boot: member.record.boot,
                beatAge: Double(max(0, now.milliseconds(since: member.changed))) / 1_000,
                link: link,
                roundTripMilliseconds: peers[name]?.roundTrip
            )
        }
        return NodeList.Result(registry: isSynced ? .reached : .away, nodes: nodes)
    }

    /// Nodes whose lease goes on, this one included.
    package var aliveCount: Int { members.alive.count }
    /// Whether the broker has answered the last write to a journal.
    package var isJournalReached: Bool { !journaling.isAway }
    /// Links that can carry messages.
    package var linkCount: Int { peers.values.count { $0.link == .up } }
    /// Calls that wait for another node's answer.
    package var waitingCount: Int { peers.values.reduce(0) { $0 + $1.calls.count } }
}

extension NodeCondition {
    fileprivate init(_ state: NodeState) {
        self =
            switch state {
            case .up: .up
            case .draining: .draining
            }
    }
}
