import Contract
package import RTP

/// Writing of all rooms' journals.
struct Journaling {
    var rooms: [String: RoomJournal] = [:]
    /// Rooms that are to be written, in order.
    var queue: [String] = []
    var underWay = 0
    /// Whether the broker did not answer the last write: nothing waits for it then.
    var isAway = false
    /// Time of the next attempt while the broker is away.
    var probe: Instant?
    var lastGroup: UInt64 = 0
    /// Events that wait for nothing any longer and are not told yet, by room and `seq`.
    var released: [String: [UInt64: [UInt8]]] = [:]
    /// Time until which nothing has waited too long, as this node stood still.
    var pausedUntil: Instant?
    /// Guest whose call is being executed.
    var executing: UInt64?

    /// Writes that are under way at one time.
    static let underWayLimit = 64
}

// Rooms' journals: changes are written, and replies and events wait for them.
extension Cluster {
    /// Takes changes of a room's records, before the replies and events that depend on them.
    package mutating func save(_ changes: [JournalRecord], of room: String, at now: Instant) {
        guard holds[room] != nil else { return }
        observe(now)
        var changes = changes
        if let guest = journaling.executing, guests[guest]?.call?.room == room,
            let name = guests[guest]?.name
        {
            changes += journaling.rooms[room, default: RoomJournal()].noteCall(name, in: room)
        }
        journaling.rooms[room, default: RoomJournal()].note(changes)
        if let guest = journaling.executing, guests[guest]?.call?.room == room {
            guests[guest]?.hasChanged = true
            guests[guest]?.change = journaling.rooms[room]?.change ?? 0
        }
        if journaling.rooms[room]?.isTooLong == true {
            log("room cannot be journaled", ["room": room], isWarning: true)
        }
        enqueue(room)
        writeJournals(at: now)
    }

    /// Notes which call is executed from now on; changes of its room are its own.
    package mutating func executes(_ connection: UInt64?) { journaling.executing = connection }

    /// Returns the events of a replay that were told before: the others will come.
    package func replayed(_ events: [ReplayedEvent]) -> [ReplayedEvent] {
        var held: Set<[UInt8]> = []
        for lines in journaling.released.values { held.formUnion(lines.values) }
        for journal in journaling.rooms.values {
            for item in journal.held {
                if case .event(_, _, let line) = item.output { held.insert(line) }
            }
        }
        return held.isEmpty ? events : events.filter { !held.contains($0.line) }
    }

    /// Takes an event of a room of this node; it goes out when what it tells is in the journal.
    package mutating func tell(
        _ line: [UInt8],
        _ name: String,
        in room: String,
        seq: UInt64,
        at now: Instant
    ) {
        observe(now)
        // A room that was given up is told by its new home.
        guard holds[room] != nil || ending.contains(room) else { return }
        if name == RoomClosed.event { ending.remove(room) }
        hold(.event(name: name, seq: seq, line), of: room, at: now)
    }

    /// Lets an output wait for its room's changes, if there are any to be written.
    mutating func hold(_ output: RoomJournal.Held.Output, of room: String, at now: Instant) {
        guard journaling.rooms[room] != nil else {
            return release(output, of: room, isStored: true)
        }
        let end = now.advanced(milliseconds: Self.durableMilliseconds)
        journaling.rooms[room]?.hold(output, until: end)
        releaseHeld(of: room, at: now)
    }

    private mutating func releaseHeld(of room: String, at now: Instant) {
        guard holds[room]?.isDoubted != true else { return }
        let isForced = journaling.isAway || !isSynced
        let isPaused = journaling.pausedUntil.map { now < $0 } ?? false
        let released = journaling.rooms[room]?
            .takeReleased(at: isPaused ? nil : now, isForced: isForced)
        for (output, isStored) in released ?? [] { release(output, of: room, isStored: isStored) }
    }

    private mutating func release(
        _ output: RoomJournal.Held.Output,
        of room: String,
        isStored: Bool
    ) {
        switch output {
        case .reply(let guest, let line): finishAnswer(guest, line, isStored: isStored)
        case .event(let name, let seq, let line):
            holds[room]?.told = seq
            journaling.released[room, default: [:]][seq] = line
            emit(.event(room: room, seq: seq, name: name, line))
        }
    }

    private mutating func enqueue(_ room: String) {
        guard journaling.rooms[room]?.isQueued == false else { return }
        journaling.rooms[room]?.isQueued = true
        journaling.queue.append(room)
    }

    /// Begins writes, as many as may be under way.
    mutating func writeJournals(at now: Instant) {
        guard !journaling.isAway || journaling.probe.map({ $0 <= now }) == true else { return }
        let limit = journaling.isAway ? 1 : Journaling.underWayLimit
        var rest: [String] = []
        var next = 0
        while next < journaling.queue.count, journaling.underWay < limit {
            let room = journaling.queue[next]
            next += 1
            guard journaling.rooms[room] != nil else { continue }
            guard holds[room]?.isWritable == true else {
                rest.append(room)
                continue
            }
            journaling.rooms[room]?.isQueued = false
            beginWriting(room, at: now)
        }
        journaling.queue.removeFirst(next)
        journaling.queue += rest
        if journaling.isAway, journaling.underWay > 0 { journaling.probe = nil }
    }

    private mutating func beginWriting(_ room: String, at now: Instant) {
        guard let journal = journaling.rooms[room], journal.writing == nil, !journal.isResolving
        else { return }
        journaling.lastGroup += 1
        let entry = entry(.changes, of: room, at: now)
        guard journaling.rooms[room]?.beginWriting(entry) == true else { return }
        writeNext(room)
    }

    /// Returns an entry without records.
    func entry(_ kind: JournalEntry.Kind, of room: String, at now: Instant) -> JournalEntry {
        JournalEntry(
            kind: kind,
            isLast: true,
            group: journaling.lastGroup,
            term: holds[room]?.term ?? 0,
            clock: JournalClock(instant: now, unixTime: unixTime),
            home: setup.name,
            boot: setup.boot
        )
    }

    private mutating func writeNext(_ room: String) {
        guard let journal = journaling.rooms[room], let writing = journal.writing,
            writing.stored < writing.messages.count
        else { return }
        let number = nextNumber()
        journaling.rooms[room]?.writing?.request = number
        journaling.underWay += 1
        registry.purposes[number] = .append(room)
        let message = writing.messages[writing.stored]
        emit(.registry(.append(number: number, journal: room, message, last: journal.last)))
    }

    /// Takes the outcome of a write.
    mutating func noteAppended(
        _ room: String,
        _ number: UInt64,
        _ outcome: RegistryOutcome,
        at now: Instant
    ) {
        journaling.underWay -= 1
        defer { writeJournals(at: now) }
        guard journaling.rooms[room]?.writing?.request == number else { return }
        switch outcome {
        case .stored(let sequence):
            journaling.isAway = false
            noteStored(room, at: sequence, at: now)
        case .conflict:
            journaling.isAway = false
            journaling.rooms[room]?.giveUpWriting()
            resolve(room)
        case .failed, .absent, .found, .journal, .journals:
            journaling.rooms[room]?.giveUpWriting(mayBeStored: true)
            enqueue(room)
            noteAway(at: now)
        }
    }

    private mutating func noteStored(_ room: String, at sequence: UInt64, at now: Instant) {
        guard let group = journaling.rooms[room]?.noteStored(at: sequence) else {
            return writeNext(room)
        }
        counters.journalGroups &+= 1
        counters.journalBytes &+= UInt64(group.messages.reduce(0) { $0 + $1.count })
        if group.isSnapshot { counters.journalSnapshots &+= 1 }
        // Before 1 there is nothing, and NATS would take it for no limit.
        if group.isSnapshot, let first = group.first, first > 1 {
            emit(.registry(.purge(journal: room, before: first)))
        }
        releaseHeld(of: room, at: now)
        if journaling.rooms[room]?.isBehind == true { enqueue(room) }
    }

    private mutating func noteAway(at now: Instant) {
        if !journaling.isAway { log("journal away", [:], isWarning: true) }
        journaling.isAway = true
        journaling.probe = now.advanced(milliseconds: Self.probeMilliseconds)
        for (room, _) in journaling.rooms.inOrder(where: { !$0.held.isEmpty }) {
            releaseHeld(of: room, at: now)
        }
    }

    /// Writes all records of a room again, as its journal may have been wiped with its name.
    mutating func rewriteJournal(of room: String, at now: Instant) {
        guard journaling.rooms[room] != nil else { return }
        journaling.rooms[room]?.giveUpWriting(mayBeStored: true)
        enqueue(room)
        writeJournals(at: now)
    }

    /// Looks where a journal is, after a write has met another message than was expected.
    ///
    /// The registry says whose the room is. It is read after the journal's end: whoever takes the
    /// room between the two appends to the journal first, so that the next write fails again.
    private mutating func resolve(_ room: String) {
        journaling.rooms[room]?.isResolving = true
        let number = nextNumber()
        registry.purposes[number] = .journalEnd(room)
        emit(.registry(.last(number: number, journal: room)))
    }

    /// Takes the end of a journal.
    mutating func noteJournalEnd(_ room: String, _ outcome: RegistryOutcome, at now: Instant) {
        guard journaling.rooms[room] != nil else { return }
        switch outcome {
        case .found(let sequence, _): verify(room, end: sequence)
        case .absent: verify(room, end: 0)
        case .failed, .stored, .conflict, .journal, .journals:
            endResolving(room, at: now, isAway: true)
        }
    }

    private mutating func verify(_ room: String, end: UInt64) {
        journaling.rooms[room]?.last = end
        let number = nextNumber()
        registry.purposes[number] = .verify(room)
        emit(.registry(.read(number: number, key: RegistryKey.room(room).text)))
    }

    /// Takes the room's record, which was just noted: the room may have been given up.
    mutating func noteVerified(_ room: String, _ outcome: RegistryOutcome, at now: Instant) {
        holds[room]?.isDoubted = false
        guard journaling.rooms[room] != nil else { return }
        endResolving(room, at: now, isAway: outcome == .failed)
        releaseHeld(of: room, at: now)
    }

    private mutating func endResolving(_ room: String, at now: Instant, isAway: Bool) {
        journaling.rooms[room]?.isResolving = false
        enqueue(room)
        if isAway { noteAway(at: now) }
        writeJournals(at: now)
    }

    /// Asks the registry whose this node's rooms are, before anything is told of them.
    ///
    /// This node has stood still for so long that others may have taken them.
    mutating func doubtHolds() {
        for (room, _) in holds.inOrder(where: { $0.mayBeTaken && !$0.isDoubted }) {
            holds[room]?.isDoubted = true
            let number = nextNumber()
            registry.purposes[number] = .verify(room)
            emit(.registry(.read(number: number, key: RegistryKey.room(room).text)))
        }
    }

    /// Lets out what has waited long enough.
    mutating func expireJournals(at now: Instant) {
        for (room, journal) in journaling.rooms.inOrder(where: { !$0.held.isEmpty }) {
            guard let first = journal.held.first else { continue }
            if first.deadline <= now || journaling.isAway || !isSynced {
                releaseHeld(of: room, at: now)
            }
        }
        writeJournals(at: now)
    }

    /// Removes the journal of a room that has ended.
    mutating func dropJournal(of room: String) {
        guard let journal = journaling.rooms.removeValue(forKey: room) else { return }
        letGo(journal, of: room)
        if journal.last > 0 { emit(.registry(.purge(journal: room, before: journal.last + 1))) }
    }

    /// Lets out all that waits for a journal that is written no longer.
    mutating func letGo(_ journal: RoomJournal?, of room: String) {
        for item in journal?.held ?? [] { release(item.output, of: room, isStored: false) }
    }

    /// Time for which a reply waits until its changes are in the journal.
    static let durableMilliseconds: Int64 = 400
    /// Time between two attempts while the broker does not answer.
    static let probeMilliseconds: Int64 = 500
}
