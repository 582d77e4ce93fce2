import RTP

/// A node as the registry and its link show it.
struct Member {
    var record: MemberRecord
    var revision: UInt64
    /// Time at which the revision changed last, by this node's clock.
    var changed: Instant
    /// Time of the last sign of life over the link.
    var heard: Instant?
    /// Whether its lease is over; others go on with its rooms.
    var isLost = false
}

/// The nodes and their leases.
///
/// A lease is over when two signs agree: the record's revision has not changed for the lease's time
/// by this node's own clock, and the link is silent. Time counts only while this node's own record
/// comes back from the broker, so a broker that stands still ends nobody's lease.
struct Members {
    let own: NodeName
    private(set) var table: [NodeName: Member] = [:]
    /// Time at which the own record came back last.
    private var ownSeen: Instant?
    /// Time since which the own record has come back without a pause.
    private var goodSince: Instant?

    init(own: NodeName) { self.own = own }

    subscript(name: NodeName) -> Member? { table[name] }

    /// Whether the registry's news are current.
    func isCurrent(at now: Instant) -> Bool {
        ownSeen.map { now.milliseconds(since: $0) < Self.pauseMilliseconds } ?? false
    }

    /// Whether a node has written no record for longer than one that runs does, though this one's
    /// own came back.
    func isSilent(_ name: NodeName, at now: Instant) -> Bool {
        guard let ownSeen, now.milliseconds(since: ownSeen) < Self.silenceMilliseconds,
            let member = table[name]
        else { return false }
        return now.milliseconds(since: member.changed) >= Self.silenceMilliseconds
    }

    /// Takes a record; returns whether the node has begun another life.
    ///
    /// Nodes above the limit are left out (`nil`).
    mutating func note(
        _ record: MemberRecord,
        of name: NodeName,
        revision: UInt64,
        at now: Instant
    ) -> Bool? {
        if name == own {
            if !isCurrent(at: now) { goodSince = now }
            ownSeen = now
        }
        guard let known = table[name] else {
            guard table.count < Self.limit else { return nil }
            table[name] = Member(record: record, revision: revision, changed: now)
            return false
        }
        guard known.revision != revision else { return false }
        table[name]?.record = record
        table[name]?.revision = revision
        table[name]?.changed = now
        table[name]?.isLost = false
        if known.record.boot != record.boot { table[name]?.heard = nil }
        return known.record.boot != record.boot
    }

    mutating func remove(_ name: NodeName) { table[name] = nil }

    mutating func hear(_ name: NodeName, at now: Instant) { table[name]?.heard = now }

    mutating func silence(_ name: NodeName) { table[name]?.heard = nil }

    /// Ends the leases that are over; returns their nodes.
    mutating func expire(at now: Instant) -> [NodeName] {
        guard isCurrent(at: now), let goodSince else { return [] }
        var lost: [NodeName] = []
        for (name, member) in table where name != own && !member.isLost {
            let start = max(member.changed, goodSince)
            let isSilent =
                member.heard.map { now.milliseconds(since: $0) >= Self.leaseMilliseconds } ?? true
            guard isSilent, now.milliseconds(since: start) >= Self.leaseMilliseconds else {
                continue
            }
            table[name]?.isLost = true
            lost.append(name)
        }
        return lost.sorted()
    }

    /// Whether a life of a node goes on, as far as is known.
    func isAlive(_ name: NodeName, boot: String) -> Bool {
        guard let member = table[name] else { return false }
        return !member.isLost && member.record.boot == boot
    }

    /// Nodes whose lease goes on, this one included, by name.
    var alive: [NodeName] { table.filter { !$0.value.isLost }.keys.sorted() }

    /// Returns the node for a new room that was asked for at this node, or `nil` if none takes one.
    ///
    /// It is the node with the least load, of this node's region if one there is less than
    /// `regionLoad` busy. This node is preferred to those that are less busy by no more than
    /// `preference`.
    func placement() -> NodeName? {
        var candidates = table.filter { name, member in
            !member.isLost && member.record.state == .up
        }
        let region = table[own]?.record.region
        let near = candidates.filter { name, member in
            member.record.region == region && member.record.load < Self.regionLoad
        }
        if !near.isEmpty { candidates = near }
        let least = candidates.min { left, right in
            (left.value.record.load, left.key) < (right.value.record.load, right.key)
        }
        guard let least else { return nil }
        if let mine = candidates[own], mine.record.load <= least.value.record.load + Self.preference
        {
            return own
        }
        return least.key
    }

    /// Nodes of a cluster, this one included.
    static let limit = 64
    static let leaseMilliseconds: Int64 = 3_000
    /// Age of a record that is no longer that of a node that runs: above the time between two
    /// (`Cluster.beatMilliseconds`) and what the registry takes.
    static let silenceMilliseconds: Int64 = 700
    /// Age of the own record at which the registry's news are no longer current.
    static let pauseMilliseconds: Int64 = 2_500
    static let preference = 0.1
    static let regionLoad = 0.8
}
