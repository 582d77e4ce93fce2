import Contract
import JSON
package import RTP

// Rooms that are let go while their home still runs: another node takes them over.
extension Cluster {
    /// Lets a room go to another node; nothing happens if that is not possible now.
    ///
    /// Calls wait meanwhile. When the journal has everything, the room's record says that the room
    /// is left, and the others take it over like that of a lost node. One that nobody took stays
    /// for a while, unless it is forced to go.
    package mutating func handOver(_ room: String, isForced: Bool = false, at now: Instant) {
        guard isSynced, members.isCurrent(at: now), !journaling.isAway, members.takesRooms,
            isForced || unwanted[room].map({ $0 <= now }) ?? true,
            journaling.rooms[room]?.isShort == true,
            journaling.rooms[room]?.isTooLong != true, let hold = holds[room],
            hold.stage == .held, hold.exists, !hold.isDoubted, !hold.isWriting,
            hold.waiting.isEmpty
        else { return }
        unwanted[room] = nil
        let until = now.advanced(milliseconds: Self.leaveMilliseconds)
        holds[room]?.stage = .leaving(until: until)
        pursue(room, at: now)
    }

    /// Marks a room as left once its journal is complete.
    mutating func leave(_ room: String, at now: Instant) {
        guard let known = directory[room], !known.record.ended else {
            return stay(room, at: now)
        }
        if hasLeft(room) { return letGo(room, at: now) }
        guard isOwn(known.record) else { return stay(room, at: now) }
        // A call under way may be answered here, and nowhere else.
        let isBusy = guests.values.contains { $0.call?.room == room }
        guard !isBusy, journaling.rooms[room]?.isComplete == true else { return }
        var record = known.record
        record.isLeft = true
        holds[room]?.mayBeLeft = true
        request(room, record, .revision(known.revision), for: .leave(room))
    }

    /// Whether the registry shows a room of this node as left, or as taken by another one.
    ///
    /// It may do so long before the broker answers the mark, or without such an answer.
    func hasLeft(_ room: String) -> Bool {
        guard let hold = holds[room], let record = directory[room]?.record, !record.ended else {
            return false
        }
        return isOwn(record) ? record.isLeft == true : record.term > hold.term
    }

    /// Keeps a room after all, and executes the calls that have waited.
    mutating func stay(_ room: String, at now: Instant) {
        holds[room]?.stage = .held
        let waiting = holds[room]?.waiting ?? []
        holds[room]?.waiting = []
        if let known = directory[room] {
            reconcile(room, revision: known.revision, isWiped: false, at: now)
        } else {
            holds[room]?.stage = .claiming(until: nil)
            pursue(room, at: now)
        }
        for call in waiting { route(call, at: now) }
    }

    /// Takes the outcome of such a mark.
    mutating func noteLeft(_ room: String, _ outcome: RegistryOutcome, at now: Instant) {
        // The room has been let go before the answer came, and may be here again.
        guard holds[room]?.mayBeLeft == true else { return }
        holds[room]?.isWriting = false
        switch outcome {
        case .stored(let revision):
            // It was an earlier mark.
            guard directory[room]?.revision ?? 0 <= revision else { return pursue(room, at: now) }
            let isHere = holds[room]?.isWritable == true || holds[room]?.isDoubted == true
            if let known = directory[room], isOwn(known.record), known.revision < revision {
                directory[room]?.record.isLeft = true
                directory[room]?.revision = revision
            }
            if isHere { letGo(room, at: now) } else { pursue(room, at: now) }
        case .conflict: check(room)
        case .failed, .absent, .found, .journal, .journals:
            holds[room]?.retry = now.advanced(milliseconds: Self.retryMilliseconds)
        }
    }

    /// Ends what this node has of a room that is marked as left.
    mutating func letGo(_ room: String, at now: Instant) {
        guard let hold = holds.removeValue(forKey: room) else { return }
        let journal = journaling.rooms.removeValue(forKey: room)
        counters.roomsLetGo &+= 1
        log("room let go", ["room": room])
        moveCalls(of: room, journal, at: now)
        emit(.letGo(room))
        // For when the new home tells more.
        noteTold(hold.told, of: room)
        if let record = directory[room]?.record, !isOwn(record) {
            goOn(with: room, at: record.home, now)
        } else {
            noteOrphan(room, at: now)
        }
        for call in hold.waiting { route(call, at: now) }
    }

    /// Subscribes a connection of this node, once the rooms whose events it has missed have homes,
    /// and this node knows them.
    ///
    /// Only homes know what it has missed.
    mutating func subscribeOnceTaken(_ call: PendingCall, _ connection: UInt64, at now: Instant) {
        var call = call
        let isUnread = asksForUnreadRoom(call)
        let restoring = restoringRoom(of: call)
        let homeless = homelessRoom(of: call, at: now)
        guard isUnread || restoring != nil || homeless != nil else {
            call.isToSubscribe = false
            return subscribe(call, connection, at: now)
        }
        call.isToSubscribe = true
        if subscriptions[connection] == nil {
            // It hears nothing until then, and is forgotten if the connection is closed.
            let none = EventsSubscribe.Params(rooms: [])
            subscriptions[connection] = Subscription(
                call: call,
                params: none,
                interest: FeedInterest(none)
            )
        }
        if isUnread {
            registry.unread.append(call)
        } else if let restoring {
            holds[restoring]?.waiting.append(call)
        } else if let homeless {
            wait(call, for: homeless, at: now)
        }
    }

    /// Goes on with the subscriptions that have waited for the directory: it is complete, or the
    /// registry does not answer.
    mutating func endFirstRead(at now: Instant) {
        registry.firstReadEnd = nil
        let waiting = registry.unread
        guard !waiting.isEmpty else { return }
        registry.unread = []
        noteOrphans(at: now)
        for call in waiting { route(call, at: now) }
    }

    /// Begins the subscription of a connection that still waits for a room, before a newer one.
    ///
    /// Later it would replace that one.
    mutating func beginWaiting(of connection: UInt64, at now: Instant) {
        var waiting: [PendingCall] = []
        for (room, orphan) in orphans {
            let calls = orphan.waiting.map(\.call).filter { $0.subscribes(connection) }
            guard !calls.isEmpty else { continue }
            waiting += calls
            orphans[room]?.waiting.removeAll { $0.call.subscribes(connection) }
        }
        for (room, hold) in holds {
            let calls = hold.waiting.filter { $0.subscribes(connection) }
            guard !calls.isEmpty else { continue }
            waiting += calls
            holds[room]?.waiting.removeAll { $0.subscribes(connection) }
        }
        waiting += registry.unread.filter { $0.subscribes(connection) }
        registry.unread.removeAll { $0.subscribes(connection) }
        for var call in waiting {
            call.isToSubscribe = false
            subscribe(call, connection, at: now)
        }
    }

    /// Takes a subscription that has waited.
    mutating func goOnSubscribing(_ call: PendingCall, at now: Instant) {
        guard case .here(let connection) = call.origin, subscriptions[connection] != nil else {
            return
        }
        subscribeOnceTaken(call, connection, at: now)
    }

    /// Whether a subscription asks for the missed events of a room that another node may have, as
    /// the registry has not been read yet.
    private func asksForUnreadRoom(_ call: PendingCall) -> Bool {
        guard registry.firstReadEnd != nil, let asked = call.request.params["since"],
            case .object(let since) = asked
        else { return false }
        return since.keys.contains { holds[$0] == nil && directory[$0] == nil }
    }

    /// Returns a room without a home that may soon have one, if a subscription asks for its missed
    /// events.
    private func homelessRoom(of call: PendingCall, at now: Instant) -> String? {
        guard let asked = call.request.params["since"], case .object(let since) = asked else {
            return nil
        }
        return since.keys.sorted().first { room in
            guard isOrphan(room, at: now), let orphan = orphans[room] else { return false }
            return now.milliseconds(since: orphan.since) < Self.linkMilliseconds / 2
        }
    }

    /// Time for which a room's calls wait for its journal before it is let go.
    private static let leaveMilliseconds: Int64 = 2_000
    /// Time for which a room stays that nobody took when it was let go.
    static let unwantedMilliseconds: Int64 = 60_000
}

extension Members {
    /// Whether another node takes rooms that are let go.
    fileprivate var takesRooms: Bool {
        table.contains { name, member in
            name != own && !member.isLost && member.record.state == .up
                && member.record.places ?? 0 > 0
        }
    }
}

extension Hold {
    /// Whether another node may take the room from this one while this one stands still.
    var mayBeTaken: Bool {
        switch stage {
        case .held, .leaving, .restoring: true
        case .claiming, .burying, .releasing: false
        }
    }

    /// Whether the room's journal may be written.
    var isWritable: Bool {
        switch stage {
        case .held, .leaving: !isDoubted
        case .claiming, .restoring, .burying, .releasing: false
        }
    }
}

extension RoomJournal {
    /// Whether it has all that has happened, and nothing waits for it.
    fileprivate var isComplete: Bool {
        !isBehind && !needsSnapshot && writing == nil && !isResolving && held.isEmpty
    }
}
