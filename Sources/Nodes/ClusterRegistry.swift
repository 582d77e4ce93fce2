import JSON
package import RTP

// News of the registry, and records that others have left behind.
extension Cluster {
    /// Takes news of the registry.
    package mutating func receive(_ update: RegistryUpdate, at now: Instant) {
        observe(now)
        switch update {
        case .away(let reason):
            // It is tried again and again: each reason is told once.
            let isNew =
                registry.causes.count < Self.maxCauses && registry.causes.insert(reason).inserted
            if isSynced || isNew { log("registry away", ["cause": reason], isWarning: true) }
            registry.syncedSince = nil
            leftovers.strays = nil
        case .snapshot: beginSnapshot(at: now)
        case .entry(let key, let revision, let value):
            registry.snapshot?.insert(key)
            registry.highest = max(registry.highest, revision)
            if value == nil { noteMark(key, revision, at: now) }
            note(key, revision, value, at: now)
        case .complete: finishSnapshot(at: now)
        case .outcome(let outcome, let number):
            guard let purpose = registry.purposes.removeValue(forKey: number) else { return }
            note(outcome, number, of: purpose, at: now)
        }
    }

    private mutating func note(
        _ outcome: RegistryOutcome,
        _ number: UInt64,
        of purpose: RegistryState.Purpose,
        at now: Instant
    ) {
        switch purpose {
        case .beat: registry.hasBeatUnderWay = false
        case .claim(let room): noteWritten(room, outcome, isClaim: true, at: now)
        case .release(let room): noteWritten(room, outcome, isClaim: false, at: now)
        case .leave(let room): noteLeft(room, outcome, at: now)
        case .bury(let room): noteBuried(room, outcome, at: now)
        case .check(let room):
            noteRead(room, outcome, number, at: now)
            noteChecked(room, outcome, at: now)
        case .lookup(let room):
            noteRead(room, outcome, number, at: now)
            finishLookup(room, outcome, at: now)
        case .tidy: registry.tidying -= 1
        case .forget: noteForgotten(outcome, at: now)
        case .list: noteListed(outcome, at: now)
        case .journalEnd(let room): noteJournalEnd(room, outcome, at: now)
        case .verify(let room):
            noteRead(room, outcome, number, at: now)
            noteVerified(room, outcome, at: now)
        case .journal(let room): noteJournal(room, outcome, at: now)
        case .fence(let room): noteFenced(room, outcome, at: now)
        case .append(let room): noteAppended(room, number, outcome, at: now)
        }
    }

    private mutating func noteRead(
        _ room: String,
        _ outcome: RegistryOutcome,
        _ number: UInt64,
        at now: Instant
    ) {
        switch outcome {
        case .found(let revision, let value):
            note(RegistryKey.room(room).text, revision, value, at: now)
        case .absent:
            // A record that was noted since the question may be newer than this answer.
            guard directory[room].map({ $0.number < number }) ?? true else { return }
            directory[room] = nil
            holds[room]?.revision = nil
        case .stored, .conflict, .journal, .journals, .failed: break
        }
    }

    private mutating func note(
        _ key: String,
        _ revision: UInt64,
        _ value: [UInt8]?,
        at now: Instant
    ) {
        switch RegistryKey(key) {
        case .member(let name):
            guard let value, let record = JSON.record(MemberRecord.self, of: value),
                record.isValid
            else {
                if name != setup.name { forget(name, at: now) }
                return
            }
            noteMember(name, record, revision, at: now)
        case .room(let room):
            let record = value.flatMap { JSON.record(RoomRecord.self, of: $0) }
            if value != nil, record?.isValid != true {
                leftovers.unreadable.insert(room)
            } else {
                leftovers.unreadable.remove(room)
            }
            noteRoom(room, record?.isValid == true ? record : nil, revision, at: now)
        case nil: break
        }
    }

    private mutating func noteMember(
        _ name: NodeName,
        _ record: MemberRecord,
        _ revision: UInt64,
        at now: Instant
    ) {
        let before = members[name]
        guard let isNewLife = members.note(record, of: name, revision: revision, at: now) else {
            return log("node left out", ["node": name.rawValue, "limit": "\(Members.limit)"])
        }
        if name == setup.name {
            if record.boot != setup.boot, before?.record.boot == setup.boot {
                log("another node has this name", ["node": name.rawValue], isWarning: true)
            }
            return
        }
        if before == nil || before?.isLost == true {
            log("node found", ["node": name.rawValue, "link": record.link])
        }
        if before?.record.fingerprint != record.fingerprint { tellTrust() }
        if isNewLife {
            log("node began again", ["node": name.rawValue])
            failCalls(to: name, exceptOf: record.boot, at: now)
            losePlaces(at: name)
            cutLink(to: name)
            endRooms(of: name, isGone: false)
            noteOrphans(at: now)
        }
    }

    private mutating func forget(_ name: NodeName, at now: Instant) {
        guard members[name] != nil else { return }
        members.remove(name)
        failCalls(to: name, exceptOf: nil, at: now)
        losePlaces(at: name)
        forgetAttachments(to: name)
        endRooms(of: name, isGone: true)
        // Which of its rooms have ended is known until the registry knows it, too.
        let known = peers[name]
        peers[name] = hasRooms(name) ? known.map(Peer.init(remembering:)) : nil
        emit(.disconnect(name))
        tellTrust()
    }

    func hasRooms(_ name: NodeName) -> Bool {
        directory.values.contains { $0.record.home == name }
    }

    private mutating func tellTrust() {
        var trusted: [String: NodeName] = [:]
        for (name, member) in members.table where name != setup.name {
            trusted[member.record.fingerprint] = name
        }
        emit(.trust(trusted))
    }

    /// Takes the end of a node's lease.
    mutating func lose(_ name: NodeName, at now: Instant) {
        counters.nodesLost &+= 1
        log("node lost", ["node": name.rawValue], isWarning: true)
        noteOrphans(at: now)
        failCalls(to: name, exceptOf: nil, at: now)
        losePlaces(at: name)
        cutLink(to: name)
    }

    /// Ends a link; one that is being made ends without news of it.
    private mutating func cutLink(to name: NodeName) {
        emit(.disconnect(name))
        if peers[name]?.link == .connecting { peers[name]?.link = .down }
    }

    /// Takes a room's record, or its removal.
    mutating func noteRoom(
        _ room: String,
        _ record: RoomRecord?,
        _ revision: UInt64,
        isWiped: Bool = false,
        at now: Instant
    ) {
        let before = directory[room]
        if record != nil { leftovers.strays?.rooms.remove(room) }
        // In a snapshot revisions may begin again, as the bucket may be another one.
        let isOld = registry.snapshot == nil && !isWiped
        if let before, isOld, revision < before.revision { return }
        directory[room] = record.map { record in
            let endedSince = record.ended ? before?.endedSince ?? now : nil
            return KnownRoom(
                record: record,
                revision: revision,
                number: lastNumber,
                endedSince: endedSince
            )
        }
        // While this node still lets it go, `letGo` tells where its events go on.
        let isLeft = before?.record.isLeft == true && holds[room]?.exists != true
        if let record, !record.ended, before?.record.ended ?? true {
            forgetFormer(room, than: record.home)
        }
        if let before, before.record.home != setup.name || isLeft, !before.record.ended {
            if let record, record.ended {
                announceLoss(of: room, from: before.record)
            } else if let record {
                noteMove(of: room, from: before.record, to: record, at: now)
            } else if !isWiped {
                forgetPosition(of: room, at: before.record.home)
            }
        } else if let before = before?.record, before.boot != setup.boot, let record,
            !before.ended
        {
            // The room was that of an earlier life of this node.
            if record.ended {
                tellLoss(of: room)
            } else {
                noteMove(of: room, from: before, to: record, at: now)
            }
        }
        if record == nil, let before, before.record.ended {
            peers[before.record.home]?.closed.remove(room)
        }
        reconcile(room, revision: revision, isWiped: isWiped, at: now)
        if record?.isLeft == true { noteOrphan(room, at: now) }
        if let node = leftOut.removeValue(forKey: room), node != setup.name,
            let record, record.home == node, !record.ended
        {
            goOn(with: room, at: node, now)
        }
        if let known = directory[room], known.record.home != setup.name, !known.record.ended {
            attachAll(to: known.record.home, for: room, at: now)
        }
    }

    private mutating func beginSnapshot(at now: Instant) {
        registry.snapshot = []
        leftovers.forgetAll()
        registry.highestBefore = max(registry.highestBefore, registry.highest)
        registry.highest = 0
        if !members.isCurrent(at: now) { registry.mayHaveMissed = true }
    }

    /// Compares the directory with the entries of a snapshot: others were wiped.
    private mutating func finishSnapshot(at now: Instant) {
        guard let met = registry.snapshot else { return }
        registry.snapshot = nil
        let wereTaken = takeRemovals()
        if registry.syncedSince == nil {
            log(
                "registry read",
                ["nodes": "\(members.table.count)", "rooms": "\(directory.count)"]
            )
        }
        registry.causes = []
        registry.syncedSince = registry.syncedSince ?? now
        let rooms = Set(directory.keys).union(holds.keys)
        for room in rooms.sorted() where !met.contains(RegistryKey.room(room).text) {
            noteRoom(room, nil, 0, isWiped: true, at: now)
        }
        for (room, wasTaken) in wereTaken.inOrder() where directory[room] == nil {
            settleRemoval(of: room, wasTaken: wasTaken, at: now)
        }
        for room in holds.keys.sorted() { pursue(room, at: now) }
        if registry.firstReadEnd != nil { endFirstRead(at: now) }
    }

    /// Returns the rooms whose records were removed, and whether another node may have had each.
    ///
    /// A bucket keeps the last of its messages, so one without it is another one: it was wiped, and
    /// removals in it are of rooms that others made since.
    private mutating func takeRemovals() -> [String: Bool] {
        let isSame = registry.highest >= registry.highestBefore
        let mayBeTaken = registry.mayHaveMissed && isSame
        let removals = registry.removals.mapValues { isLater in isLater && mayBeTaken }
        registry.removals = [:]
        registry.mayHaveMissed = false
        registry.highestBefore = 0
        return removals
    }

    /// Takes the removal of the record of a room that is here.
    ///
    /// Nodes remove no record of a room that goes on. So another node has taken this one and ended
    /// it, if it had the time for that; otherwise the registry was wiped, or somebody has removed
    /// the record by hand. `isLater`: the removal came after the record that this node knew.
    mutating func noteRemoval(of room: String, isLater: Bool, isWiped: Bool, at now: Instant) {
        let isDoubted = holds[room]?.isDoubted == true
        if isWiped {
            holds[room]?.stage = .claiming(until: nil)
            pursue(room, at: now)
        } else if registry.snapshot != nil {
            // Only the snapshot's end shows whether the bucket is another one.
            registry.removals[room] = isLater || registry.removals[room] == true
            if isDoubted { registry.mayHaveMissed = true }
        } else if isLater {
            let mayBeTaken = isDoubted || !members.isCurrent(at: now)
            settleRemoval(of: room, wasTaken: mayBeTaken, at: now)
        }
    }

    /// Ends a room whose name another node had, or claims the name again.
    private mutating func settleRemoval(of room: String, wasTaken: Bool, at now: Instant) {
        guard holds[room]?.stage == .held else { return }
        if wasTaken { return yield(room, at: now) }
        holds[room]?.stage = .claiming(until: nil)
        // The removal may be an old one, so the registry is asked before the record is written.
        check(room)
    }

    mutating func write(
        _ key: RegistryKey,
        _ record: (some Encodable)?,
        _ condition: WriteCondition,
        for purpose: RegistryState.Purpose
    ) {
        let number = nextNumber()
        registry.purposes[number] = purpose
        let value = record.map { JSON.encoded($0) }
        emit(.registry(.write(number: number, key: key.text, value: value, condition)))
    }

    /// Most reasons for which the registry cannot be reached that are told at one time.
    private static let maxCauses = 8
}
