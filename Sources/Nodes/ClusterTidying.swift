import RTP

/// Leftovers of records that were removed.
struct Leftovers {
    /// Mark that the registry has in place of a record that was removed.
    struct Mark: Hashable {
        var key: String
        var revision: UInt64
        var since: Instant
    }

    /// Marks in the order in which they were seen.
    var marks: [Mark] = []
    /// Marks that are removed in this turn, the next one last.
    var due: [Mark] = []
    /// Mark that is being removed.
    var underWay: Mark?
    /// Time until which none is removed, as the broker did not do it.
    var pausedUntil: Instant?

    /// Journals of rooms that have no record.
    struct Strays {
        var rooms: Set<String>
        /// Sequence of the last message of all journals when they were listed.
        var last: UInt64
        var since: Instant
    }

    /// Journals that are removed if no record of their rooms comes meanwhile.
    var strays: Strays?
    /// Rooms whose records cannot be read here, such as those of a later version: their journals
    /// are no strays.
    var unreadable: Set<String> = []
    /// Time at which the journals are listed again.
    var nextList: Instant?

    /// Forgets all, as the registry tells again what it has.
    mutating func forgetAll() { (marks, due, strays, unreadable) = ([], [], nil, []) }
}

// Removal of what nobody needs any longer: records of rooms and nodes, the marks that they leave,
// and journals.
extension Cluster {
    /// Marks rooms as ended whose home is gone, and later removes what nobody needs.
    ///
    /// The first of the living nodes by name does that, and each node for its own earlier lives.
    mutating func tidyDirectory(at now: Instant) {
        guard isSynced, members.isCurrent(at: now) else { return }
        tidyPeers()
        let isFirst = members.alive.first == setup.name
        tidyMarks(isFirst: isFirst, at: now)
        tidyJournals(isFirst: isFirst, at: now)
        let over = directory.filter { $0.value.endedSince != nil || orphans[$0.key] != nil }
        for (room, known) in over.inOrder() where registry.tidying < Self.tidyingLimit {
            let isMine = known.record.home == setup.name && known.record.boot != setup.boot
            guard isFirst || isMine, holds[room] == nil else { continue }
            if let since = known.endedSince {
                guard now.milliseconds(since: since) >= Self.keepMilliseconds else { continue }
                tidy(.room(room), nil as RoomRecord?, known.revision)
            } else if let orphan = orphans[room],
                now.milliseconds(since: orphan.since) >= Self.orphanMilliseconds
            {
                var record = known.record
                record.ended = true
                tidy(.room(room), record, known.revision)
            }
        }
        guard isFirst else { return }
        for (name, member) in members.table.inOrder(where: \.isLost)
        where now.milliseconds(since: member.changed) >= Self.keepMilliseconds {
            tidy(.member(name), nil as MemberRecord?, member.revision)
        }
    }

    private mutating func tidy(
        _ key: RegistryKey,
        _ record: (some Encodable)?,
        _ revision: UInt64
    ) {
        registry.tidying += 1
        write(key, record, .revision(revision), for: .tidy)
    }

    /// Forgets nodes that have left, once their rooms have ended.
    private mutating func tidyPeers() {
        for name in peers.keys where members[name] == nil && !hasRooms(name) { peers[name] = nil }
    }

    /// Notes that the registry has a mark in place of a record.
    ///
    /// It would keep the marks for ever, one for each name that was ever used, and tell every node
    /// of all of them at its start.
    mutating func noteMark(_ key: String, _ revision: UInt64, at now: Instant) {
        // Others may write there, too.
        guard RegistryKey(key) != nil else { return }
        leftovers.marks.append(Leftovers.Mark(key: key, revision: revision, since: now))
    }

    /// Removes old marks, if this is the first of the living nodes.
    private mutating func tidyMarks(isFirst: Bool, at now: Instant) {
        guard isFirst else {
            // The first node removes them, and no news come of that.
            return leftovers.marks.removeFirst(marks(olderThan: 2 * Self.markMilliseconds, now))
        }
        guard leftovers.underWay == nil, leftovers.pausedUntil.map({ $0 <= now }) ?? true else {
            return
        }
        if leftovers.due.isEmpty {
            let count = min(Self.marksPerTurn, marks(olderThan: Self.markMilliseconds, now))
            leftovers.due = leftovers.marks.prefix(count).reversed()
            leftovers.marks.removeFirst(count)
        }
        forgetNext()
    }

    /// Returns how many of the first marks were seen so long ago.
    private func marks(olderThan milliseconds: Int64, _ now: Instant) -> Int {
        leftovers.marks.firstIndex { now.milliseconds(since: $0.since) < milliseconds }
            ?? leftovers.marks.count
    }

    /// Removes marks one by one, so that claims and beats need not wait.
    private mutating func forgetNext() {
        guard let mark = leftovers.due.popLast() else { return }
        leftovers.underWay = mark
        let number = nextNumber()
        registry.purposes[number] = .forget
        emit(.registry(.forget(number: number, key: mark.key, revision: mark.revision)))
    }

    /// Takes the outcome of the removal of a mark.
    mutating func noteForgotten(_ outcome: RegistryOutcome, at now: Instant) {
        guard let mark = leftovers.underWay else { return }
        leftovers.underWay = nil
        if case .stored = outcome { return forgetNext() }
        leftovers.pausedUntil = now.advanced(milliseconds: Self.forgetPauseMilliseconds)
        leftovers.marks = [mark] + leftovers.due.reversed() + leftovers.marks
        leftovers.due = []
    }

    /// Looks for journals of rooms that are no more, and removes them, if this is the first node.
    ///
    /// They are left where nobody could take a room over, or where the broker did not do what the
    /// home asked for. All journals share one limit, beyond which nothing more is stored.
    private mutating func tidyJournals(isFirst: Bool, at now: Instant) {
        guard isFirst else {
            (leftovers.strays, leftovers.nextList) = (nil, nil)
            return
        }
        purgeStrays(at: now)
        guard let next = leftovers.nextList else {
            leftovers.nextList = now.advanced(milliseconds: Self.listMilliseconds)
            return
        }
        guard leftovers.strays == nil, next <= now else { return }
        leftovers.nextList = now.advanced(milliseconds: Self.listMilliseconds)
        let number = nextNumber()
        registry.purposes[number] = .list
        emit(.registry(.journals(number: number)))
    }

    /// Takes the list of journals.
    mutating func noteListed(_ outcome: RegistryOutcome, at now: Instant) {
        guard case .journals(let rooms, let last) = outcome, isSynced else { return }
        let strays = rooms.filter { isStray($0) }
        guard !strays.isEmpty, last > 0 else { return }
        leftovers.strays = Leftovers.Strays(rooms: Set(strays), last: last, since: now)
    }

    /// Removes the journals of rooms that had no record for a minute since they were listed.
    ///
    /// A room whose record was on its way then has come meanwhile. One that was made since has its
    /// messages behind the end of that time.
    private mutating func purgeStrays(at now: Instant) {
        guard let strays = leftovers.strays, !journaling.isAway,
            now.milliseconds(since: strays.since) >= Self.keepMilliseconds
        else { return }
        for room in strays.rooms.sorted().prefix(Self.straysPerTurn) {
            leftovers.strays?.rooms.remove(room)
            guard isStray(room) else { continue }
            emit(.registry(.purge(journal: room, before: strays.last + 1)))
        }
        if leftovers.strays?.rooms.isEmpty == true { leftovers.strays = nil }
    }

    /// Whether the registry has no record of a room, and this node does nothing about it.
    private func isStray(_ room: String) -> Bool {
        directory[room] == nil && holds[room] == nil && !leftovers.unreadable.contains(room)
    }

    /// Records that are marked or removed at one time.
    static let tidyingLimit = 200
    /// Time after which the name of a lost node's room is free if nobody could go on with it.
    static let orphanMilliseconds: Int64 = 15_000
    /// Time for which records of ended rooms and lost nodes are kept.
    static let keepMilliseconds: Int64 = 60_000
    /// Time for which the mark of a removed record is kept.
    ///
    /// A node that was without the registry for longer cannot tell that a room of its own was taken
    /// over and has ended, and goes on with it.
    static let markMilliseconds: Int64 = 3_600_000
    /// Marks that are removed in one turn.
    static let marksPerTurn = 50
    /// Time between two lists of all journals.
    static let listMilliseconds: Int64 = 600_000
    /// Journals that are removed in one turn.
    static let straysPerTurn = 10
    /// Time without removals of marks after the broker has not done one.
    static let forgetPauseMilliseconds: Int64 = 600_000
}
