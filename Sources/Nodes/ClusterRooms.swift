import Contract
package import RTP

/// A room's record with its revision.
struct KnownRoom {
    var record: RoomRecord
    var revision: UInt64
    /// Number of the last request before the record was noted.
    var number: UInt64
    /// Time at which the record was seen as ended.
    var endedSince: Instant?
}

/// This node's claim to a room's name.
struct Hold {
    enum Stage: Equatable {
        /// The registry is asked for the name; calls that wait are refused at this time.
        case claiming(until: Instant?)
        case held
        /// The room is let go to another node; it is kept if that is not possible by this time.
        case leaving(until: Instant)
        /// The name is this node's, and the journal of the lost node is read.
        case restoring
        /// The room cannot go on, and the registry tells the others.
        case burying
        /// The room has ended, and the registry is told.
        case releasing
    }

    var term: UInt64
    /// Whether the control plane has the room.
    var exists: Bool
    var stage: Stage
    /// Whether the claim was given up and its record freed since: the record of a room that has
    /// been let go is not.
    var isGivenUp = false
    /// `seq` of the room's last event that was told here.
    var told: UInt64 = 0
    /// Revision of our record, or of the deletion before it.
    var revision: UInt64?
    var isWriting = false
    var retry: Instant?
    var waiting: [PendingCall] = []
    /// Whether the room is that of a lost node.
    var takesOver: Bool { takeoverEnd != nil }
    /// Home of such a room that was lost.
    var formerHome: NodeName?
    /// Time at which calls no longer wait for such a room.
    var takeoverEnd: Instant?
    /// Whether its end was told here before its home was lost.
    var hasEnded = false
    /// Records of such a room, until it goes on here.
    var contents: JournalContents?
    /// Sequence of the last message that its journal is known to have.
    var journalEnd: UInt64?
    /// Whether the registry may have a mark that the room is left.
    var mayBeLeft = false
    /// Whether another node may have taken the room, as this one stood still.
    var isDoubted = false
}

extension Hold {
    /// Whether time brings something to do for it.
    fileprivate var hasWork: Bool { stage != .held || retry != nil || !waiting.isEmpty }

    /// Whether calls have waited long enough, as the registry does not answer.
    fileprivate func isLate(at now: Instant, isSynced: Bool) -> Bool {
        switch stage {
        case .releasing, .burying: !isSynced
        case .claiming, .restoring, .held, .leaving:
            !exists && takeoverEnd.map { $0 <= now } ?? false
        }
    }
}

// Claims to rooms' names.
extension Cluster {
    /// Claims the name of a new room for a call that creates it.
    mutating func claim(_ room: String, for call: PendingCall, at now: Instant) {
        let until = now.advanced(milliseconds: Self.claimMilliseconds)
        var hold = Hold(term: 1, exists: false, stage: .claiming(until: until))
        hold.waiting = [call]
        holds[room] = hold
        pursue(room, at: now)
    }

    /// Takes the next step for a claim or a release, if none is under way.
    mutating func pursue(_ room: String, at now: Instant) {
        guard let hold = holds[room], !hold.isWriting, isSynced else { return }
        switch hold.stage {
        case .held: break
        case .leaving: leave(room, at: now)
        case .restoring: readJournal(of: room)
        case .burying:
            guard let known = directory[room], isOwn(known.record), !known.record.ended else {
                return finishRelease(room, at: now)
            }
            var record = known.record
            record.ended = true
            request(room, record, .revision(known.revision), for: .bury(room))
        case .releasing:
            guard let known = directory[room], isOwn(known.record),
                !hold.isGivenUp || known.record.goesOn
            else { return finishRelease(room, at: now) }
            request(room, nil, .revision(known.revision), for: .release(room))
        case .claiming: pursueClaim(room, hold, at: now)
        }
    }

    private mutating func pursueClaim(_ room: String, _ hold: Hold, at now: Instant) {
        var term = hold.term
        var condition = hold.revision.map(WriteCondition.revision) ?? .absent
        if let known = directory[room] {
            if isOwn(known.record), known.record.goesOn {
                return finishClaim(room, known, at: now)
            }
            if hold.exists {
                guard known.record.term < hold.term else { return yield(room, at: now) }
            } else {
                guard isOver(known.record, at: now) else { return yield(room, at: now) }
                term = max(term, known.record.term + 1)
            }
            condition = .revision(known.revision)
        }
        holds[room]?.term = term
        let record = RoomRecord(home: setup.name, boot: setup.boot, term: term)
        request(room, record, condition, for: .claim(room))
    }

    mutating func request(
        _ room: String,
        _ record: RoomRecord?,
        _ condition: WriteCondition,
        for purpose: RegistryState.Purpose
    ) {
        holds[room]?.isWriting = true
        holds[room]?.retry = nil
        write(RegistryKey.room(room), record, condition, for: purpose)
    }

    func isOwn(_ record: RoomRecord) -> Bool {
        record.home == setup.name && record.boot == setup.boot
    }

    private mutating func finishClaim(_ room: String, _ known: KnownRoom, at now: Instant) {
        holds[room]?.stage = .held
        holds[room]?.term = known.record.term
        holds[room]?.revision = known.revision
        if holds[room]?.takesOver == true, holds[room]?.exists == false {
            return readJournal(of: room)
        }
        let waiting = holds[room]?.waiting ?? []
        holds[room]?.waiting = []
        guard holds[room]?.exists == false else {
            rewriteJournal(of: room, at: now)
            return waiting.forEach { execute($0) }
        }
        for (index, call) in waiting.enumerated() {
            execute(call, creates: index == waiting.count - 1 ? room : nil)
        }
        if waiting.isEmpty { release(room, at: now) }
    }

    /// Notes whether a room exists after a call that was to create it.
    package mutating func conclude(_ room: String, exists: Bool, at now: Instant) {
        guard let hold = holds[room] else { return }
        holds[room]?.exists = exists
        if !exists, hold.stage == .held { release(room, at: now) }
        // It was closed and created again by calls that had waited for the name.
        if exists, hold.stage == .releasing { holds[room]?.stage = .claiming(until: nil) }
    }

    /// Notes that a room of this node has ended.
    package mutating func roomEnded(_ room: String, at now: Instant) {
        guard holds[room] != nil else { return }
        holds[room]?.exists = false
        release(room, at: now)
    }

    private mutating func release(_ room: String, at now: Instant) {
        holds[room]?.stage = .releasing
        pursue(room, at: now)
    }

    private mutating func finishRelease(_ room: String, at now: Instant) {
        dropJournal(of: room)
        guard let hold = holds.removeValue(forKey: room) else { return }
        purgeBuried(room, upTo: hold.journalEnd)
        unwanted[room] = nil
        forgetPositions(of: room)
        for call in hold.waiting { route(call, at: now) }
    }

    /// Gives a name up that another node has: ends the room, and sends the calls there that wait.
    mutating func yield(_ room: String, at now: Instant) {
        guard let hold = holds.removeValue(forKey: room) else { return }
        let journal = journaling.rooms.removeValue(forKey: room)
        if hold.exists {
            counters.roomsLost &+= 1
            let record = directory[room]?.record
            let other = record?.home.rawValue ?? "none"
            log("room lost to another node", ["room": room, "home": other], isWarning: true)
            if let record, !record.ended {
                moveCalls(of: room, journal, at: now)
                emit(hold.mayBeLeft ? .letGo(room) : .abandonRoom(room))
                noteTold(hold.told, of: room)
                goOn(with: room, at: record.home, now)
            } else {
                letGo(journal, of: room)
                ending.insert(room)
                emit(.endRoom(room))
            }
        } else if hold.takesOver, hold.mayBeTaken, let record = directory[room]?.record,
            !record.ended
        {
            // The name was this node's for a while, so that nobody was asked for the events.
            goOn(with: room, at: record.home, now)
        }
        if !hold.exists {
            emit(.cancelAdoption(room))
            letGo(journal, of: room)
        }
        for call in hold.waiting { route(call, at: now) }
    }

    /// Answers the calls of a room that was given up, or sends them to its new home.
    ///
    /// Changes that are not in the journal have not happened there.
    mutating func moveCalls(of room: String, _ journal: RoomJournal?, at now: Instant) {
        var replies: [UInt64: [UInt8]] = [:]
        for item in journal?.held ?? [] {
            if case .reply(let guest, let line) = item.output { replies[guest] = line }
        }
        let written = journal?.written ?? 0
        // They keep their order at the new home.
        for (number, guest) in guests.inOrder(where: { $0.call?.room == room }) {
            let isStored = guest.hasChanged && guest.change <= journal?.stored ?? 0
            if isStored, let line = replies[number] {
                finishAnswer(number, line, isStored: true)
            } else if guest.hasChanged, guest.change <= written {
                giveUp(number)
            } else {
                moveOn(number, at: now)
            }
        }
    }

    /// Takes the outcome of a write for a room's name.
    mutating func noteWritten(
        _ room: String,
        _ outcome: RegistryOutcome,
        isClaim: Bool,
        at now: Instant
    ) {
        holds[room]?.isWriting = false
        switch outcome {
        case .stored(let revision):
            if isClaim {
                let term = holds[room]?.term ?? 1
                let record = RoomRecord(home: setup.name, boot: setup.boot, term: term)
                noteRoom(room, record, revision, at: now)
            } else {
                noteRoom(room, nil, revision, at: now)
            }
            pursue(room, at: now)
        case .conflict: check(room)
        case .failed, .absent, .found, .journal, .journals:
            holds[room]?.retry = now.advanced(milliseconds: Self.retryMilliseconds)
        }
    }

    /// Takes the outcome of a write that ends a room's record.
    mutating func noteBuried(_ room: String, _ outcome: RegistryOutcome, at now: Instant) {
        guard case .stored(let revision) = outcome, var record = directory[room]?.record else {
            return noteWritten(room, outcome, isClaim: false, at: now)
        }
        holds[room]?.isWriting = false
        record.ended = true
        noteRoom(room, record, revision, at: now)
        pursue(room, at: now)
    }

    /// Reads a record again after a write has met another revision, or was perhaps not stored.
    mutating func check(_ room: String) {
        guard holds[room]?.isWriting == false else { return }
        holds[room]?.isWriting = true
        holds[room]?.retry = nil
        let number = nextNumber()
        registry.purposes[number] = .check(room)
        emit(.registry(.read(number: number, key: RegistryKey.room(room).text)))
    }

    /// Takes the outcome of such a look.
    mutating func noteChecked(_ room: String, _ outcome: RegistryOutcome, at now: Instant) {
        holds[room]?.isWriting = false
        if outcome == .failed {
            holds[room]?.retry = now.advanced(milliseconds: Self.retryMilliseconds)
        } else {
            pursue(room, at: now)
        }
    }

    /// Compares a room's record with this node's claim.
    mutating func reconcile(_ room: String, revision: UInt64, isWiped: Bool, at now: Instant) {
        guard let hold = holds[room] else { return freeUnclaimed(room, at: now) }
        if directory[room] == nil { holds[room]?.revision = isWiped ? nil : revision }
        if hold.stage == .restoring {
            // Another node may have taken the room from this one meanwhile.
            guard let known = directory[room], isOwn(known.record) else {
                return yield(room, at: now)
            }
            return
        }
        // Nothing may be told here of a room that others take over, whatever awaits an answer.
        if case .leaving = hold.stage, hasLeft(room) { return letGo(room, at: now) }
        guard hold.stage == .held else { return pursue(room, at: now) }
        guard let known = directory[room] else {
            let isLater = revision > hold.revision ?? 0
            return noteRemoval(of: room, isLater: isLater, isWiped: isWiped, at: now)
        }
        if isOwn(known.record), known.record.isLeft == true {
            letGo(room, at: now)
        } else if isOwn(known.record), !known.record.ended {
            holds[room]?.revision = known.revision
        } else if known.record.term >= hold.term {
            yield(room, at: now)
        } else {
            holds[room]?.stage = .claiming(until: nil)
            pursue(room, at: now)
        }
    }

    /// Frees a name that the registry shows as this node's though its claim was given up, as the
    /// broker did not answer in time.
    private mutating func freeUnclaimed(_ room: String, at now: Instant) {
        guard let known = directory[room], isOwn(known.record), known.record.goesOn else { return }
        holds[room] = Hold(term: known.record.term, exists: false, stage: .releasing)
        holds[room]?.isGivenUp = true
        pursue(room, at: now)
    }

    /// Refuses a call for a room that nobody has yet; a subscription does without that room.
    private mutating func refuse(_ call: PendingCall, without room: String, at now: Instant) {
        guard call.isToSubscribe, case .here(let connection) = call.origin else {
            return refuse(call, .registryAway())
        }
        guard subscriptions[connection] != nil else { return }
        var call = call
        call.isToSubscribe = false
        subscribe(call, connection, at: now)
    }

    mutating func expireHolds(at now: Instant) {
        for (room, hold) in holds.inOrder(where: \.hasWork) {
            if case .leaving(let until) = hold.stage, until <= now {
                stay(room, at: now)
            } else if case .claiming(let until?) = hold.stage, until <= now, !hold.exists {
                holds[room] = nil
                for call in hold.waiting { refuse(call, .registryAway()) }
                // The record may have come, and only the answer to its write is missing.
                freeUnclaimed(room, at: now)
            } else if hold.waiting.contains(where: { !$0.asksForPeer }),
                hold.isLate(at: now, isSynced: isSynced)
            {
                // Another node takes a refusal of its question for events for an answer, and gets
                // none of them.
                holds[room]?.waiting = hold.waiting.filter(\.asksForPeer)
                for call in hold.waiting where !call.asksForPeer {
                    refuse(call, without: room, at: now)
                }
            } else if let retry = hold.retry, retry <= now {
                check(room)
            } else if hold.stage != .held, !hold.isWriting, hold.retry == nil {
                pursue(room, at: now)
            }
        }
    }

    /// Longest time for which a call waits for a new room's name.
    static let claimMilliseconds: Int64 = 3_000
    static let retryMilliseconds: Int64 = 200
}
