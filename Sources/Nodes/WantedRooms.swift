import RTP

// Rooms whose events are wanted, and the nodes that are asked for them.
extension Cluster {
    /// Returns the names that rooms may have whose events are wanted.
    ///
    /// If few rooms are wanted, no others are looked at, as a cluster may have many.
    func names(for interest: FeedInterest) -> [String] {
        interest.rooms.map { Array($0) } ?? Array(directory.keys)
    }

    /// Returns the other nodes that have rooms whose events are wanted.
    func homes(for interest: FeedInterest, at now: Instant) -> [NodeName] {
        var homes: Set<NodeName> = []
        for room in names(for: interest) {
            guard let record = directory[room]?.record, record.home != setup.name,
                !isOver(record, at: now)
            else { continue }
            homes.insert(record.home)
        }
        return homes.sorted()
    }

    /// Returns the rooms whose events are wanted, by the node that is asked for them.
    func roomsByHome(for interest: FeedInterest) -> [NodeName: [String]] {
        var rooms: [NodeName: [String]] = [:]
        for room in names(for: interest) {
            guard let record = directory[room]?.record, isHome(record.home, record) else {
                continue
            }
            rooms[record.home, default: []].append(room)
        }
        return rooms
    }

    /// Returns the rooms of a node whose events are wanted.
    ///
    /// `all` are its rooms once a connection has wanted them: the others want the same, and finding
    /// them takes a look at each room of the cluster.
    func rooms(
        of node: NodeName,
        for interest: FeedInterest,
        _ all: inout [String]?
    ) -> [String] {
        guard interest.rooms == nil else { return roomsByHome(for: interest)[node] ?? [] }
        let rooms = all ?? directory.compactMap { isHome(node, $0.value.record) ? $0.key : nil }
        all = rooms
        return rooms
    }

    /// Whether a node is asked for the events of a room with this record.
    ///
    /// Rooms of an earlier life have ended, which was told. A node whose lease is over may be
    /// linked again before it is seen to live, and goes on telling.
    func isHome(_ node: NodeName, _ record: RoomRecord) -> Bool {
        record.home == node && !record.ended && record.boot == members[node]?.record.boot
    }
}
