import Contract
import JSON
package import RTP

/// Room whose home is lost, until another node has it.
struct Orphan {
    /// Time at which it was seen.
    var since: Instant
    /// Calls that wait for its new home, and the time until which each does.
    var waiting: [(call: PendingCall, until: Instant)] = []
}

/// Room of a lost node, for the control plane to go on with.
package struct TakenRoom: Hashable, Sendable {
    package var name: String
    package var contents: JournalContents

    package init(name: String, contents: JournalContents) {
        self.name = name
        self.contents = contents
    }
}

// Rooms of lost nodes: one of the others reads the journal and goes on with the room.
extension Cluster {
    /// Whether a room's home is lost, and no other node has it yet.
    func isOrphan(_ room: String, at now: Instant) -> Bool {
        guard let known = directory[room], holds[room] == nil else { return false }
        return !known.record.ended && isOver(known.record, at: now)
    }

    /// Whether a room's next home is not known yet, or is this node and does not have it yet.
    func isBetweenHomes(_ room: String, at now: Instant) -> Bool {
        holds[room].map { $0.takesOver && !$0.exists } ?? isOrphan(room, at: now)
    }

    /// Notes the rooms whose homes are lost.
    mutating func noteOrphans(at now: Instant) {
        for room in directory.keys { noteOrphan(room, at: now) }
    }

    /// Notes a room if its home is lost or has let it go.
    mutating func noteOrphan(_ room: String, at now: Instant) {
        guard orphans[room] == nil, isOrphan(room, at: now) else { return }
        orphans[room] = Orphan(since: now)
    }

    /// Lets a call wait for the room's new home.
    ///
    /// Another node's question for events waits however many do: that node takes a refusal for an
    /// answer, and what was missed would never come. It has a record of each question, too.
    mutating func wait(_ call: PendingCall, for room: String, at now: Instant) {
        let isFull = orphans[room]?.waiting.count ?? 0 >= NodeList.waitingLimit
        guard call.asksForPeer || !isFull else {
            return refuse(call, .limitReached("nodeCallsWaiting", NodeList.waitingLimit))
        }
        // A subscription is for other rooms, too.
        let share: Int64 = call.isToSubscribe ? 2 : 1
        let end = now.advanced(milliseconds: Self.linkMilliseconds / share)
        orphans[room, default: Orphan(since: now)].waiting.append((call, end))
    }

    /// Takes over rooms whose turn at this node has come, and answers calls that waited too long.
    mutating func expireOrphans(at now: Instant) {
        var places = load.places
        if !orphans.isEmpty { places -= holds.values.count { $0.takesOver && !$0.exists } }
        for (room, orphan) in orphans.inOrder() {
            guard isOrphan(room, at: now) else {
                let waiting = orphans.removeValue(forKey: room)?.waiting ?? []
                for (call, _) in waiting { route(call, at: now) }
                continue
            }
            let late = orphan.waiting.filter { $0.until <= now }
            if !late.isEmpty {
                orphans[room]?.waiting.removeAll { $0.until <= now }
                let home = directory[room]?.record.home ?? setup.name
                for (call, _) in late {
                    // Nothing of it is refused.
                    guard call.room != nil else {
                        route(call, at: now)
                        continue
                    }
                    refuse(call, isSynced ? .nodeUnreachable(home) : .registryAway())
                }
            }
            guard isSynced, places > 0, members.isCurrent(at: now),
                let lost = directory[room]?.record.home,
                let turn = members.turn(for: room, of: lost),
                now.milliseconds(since: orphan.since) >= patience(for: lost, turn)
            else { continue }
            places -= 1
            beginTakeover(of: room, at: now)
        }
    }

    /// Time that a room waits until it is this node's turn to take it over.
    ///
    /// A node that has let a room go takes it back if nobody else does.
    private func patience(for lost: NodeName, _ turn: Int) -> Int64 {
        lost == setup.name ? Self.regretMilliseconds : Int64(turn) * Self.turnMilliseconds
    }

    private mutating func beginTakeover(of room: String, at now: Instant) {
        guard let known = directory[room], let orphan = orphans.removeValue(forKey: room) else {
            return
        }
        // The claim gets a later term.
        var hold = Hold(term: known.record.term, exists: false, stage: .claiming(until: nil))
        hold.takeoverEnd = now.advanced(milliseconds: Self.linkMilliseconds)
        hold.formerHome = known.record.home
        if known.record.home == setup.name {
            unwanted[room] = now.advanced(milliseconds: Self.unwantedMilliseconds)
        }
        hold.waiting = orphan.waiting.map(\.call)
        holds[room] = hold
        pursue(room, at: now)
    }

    /// Reads the journal of a room whose name this node has got.
    mutating func readJournal(of room: String) {
        holds[room]?.stage = .restoring
        holds[room]?.isWriting = true
        holds[room]?.retry = nil
        let number = nextNumber()
        registry.purposes[number] = .journal(room)
        emit(.registry(.journal(number: number, journal: room)))
    }

    /// Takes the journal; its writer is kept from writing on before the room goes on here.
    mutating func noteJournal(_ room: String, _ outcome: RegistryOutcome, at now: Instant) {
        guard holds[room]?.stage == .restoring else { return }
        holds[room]?.isWriting = false
        switch outcome {
        case .journal(let messages, let last):
            holds[room]?.journalEnd = last
            guard let contents = JournalContents(messages), !contents.records.isEmpty else {
                return bury(room, at: now)
            }
            holds[room]?.contents = contents
            holds[room]?.isWriting = true
            journaling.lastGroup += 1
            let number = nextNumber()
            registry.purposes[number] = .fence(room)
            let message = entry(.fence, of: room, at: now).encoded
            emit(.registry(.append(number: number, journal: room, message, last: last)))
        case .absent: bury(room, at: now)
        case .failed, .stored, .conflict, .found, .journals: retry(room, at: now)
        }
    }

    /// Takes the outcome of the first write to the journal of a room that is taken over.
    mutating func noteFenced(_ room: String, _ outcome: RegistryOutcome, at now: Instant) {
        guard holds[room]?.stage == .restoring else { return }
        holds[room]?.isWriting = false
        switch outcome {
        case .stored(let sequence):
            // This node has stood still: the answer may be an old one.
            guard holds[room]?.isDoubted == false else { return retry(room, at: now) }
            guard let contents = holds[room]?.contents else { return }
            holds[room]?.contents = nil
            holds[room]?.journalEnd = sequence
            holds[room]?.stage = .held
            journaling.rooms[room] = RoomJournal(last: sequence, of: room, contents)
            emit(.adopt(TakenRoom(name: room, contents: contents)))
        // The lost node has written meanwhile: that counts too.
        case .conflict: readJournal(of: room)
        case .failed, .absent, .found, .journal, .journals: retry(room, at: now)
        }
    }

    private mutating func retry(_ room: String, at now: Instant) {
        holds[room]?.retry = now.advanced(milliseconds: Self.retryMilliseconds)
    }

    /// Returns a room that is being taken over here, if a subscription asks for its missed events.
    func restoringRoom(of call: PendingCall) -> String? {
        guard call.request.method == EventsSubscribe.name,
            let asked = call.request.params["since"], case .object(let since) = asked
        else { return nil }
        return since.keys.sorted().first {
            holds[$0]?.takesOver == true && holds[$0]?.exists == false
        }
    }

    /// Notes whether the control plane goes on with a room.
    ///
    /// `last` is the `seq` of the journal's last event, `nil` if the room cannot go on. Those of
    /// `events` are kept, oldest first; connections of this node get the ones that they missed.
    package mutating func adopted(
        _ room: String,
        last: UInt64?,
        events: [(seq: UInt64, name: String, line: [UInt8])],
        at now: Instant
    ) {
        guard let last else {
            journaling.rooms[room] = nil
            return bury(room, at: now)
        }
        holds[room]?.exists = true
        // Until the number is told again.
        load.places = max(0, load.places - 1)
        counters.roomsTakenOver &+= 1
        holds[room]?.told = last
        let lastSeen = lastSeen(room)
        for (connection, subscription) in subscriptions.inOrder(
            where: { $0.interest.includes(room: room) })
        {
            // It is answered with what it asks for.
            let asks = subscription.params.since?[RoomID(room)] != nil
            guard subscription.isBegun || !asks else { continue }
            let seen = subscription.positions[room]?.seq ?? lastSeen ?? 0
            let lines = missed(room, since: seen, last: last, events, of: subscription.interest)
            for line in lines { deliver(line, to: connection) }
        }
        let waiting = holds[room]?.waiting ?? []
        holds[room]?.waiting = []
        for call in waiting { route(call, at: now) }
    }

    /// Returns the lines that a connection gets in place of what it has missed: a single `resync`
    /// if some of it is no longer kept, or if it has events that the journal lacks.
    private func missed(
        _ room: String,
        since seen: UInt64,
        last: UInt64,
        _ events: [(seq: UInt64, name: String, line: [UInt8])],
        of interest: FeedInterest
    ) -> [[UInt8]] {
        var reason: String?
        if seen > last {
            reason = "ahead"
        } else if seen < last, (events.first?.seq ?? .max) > seen + 1 {
            reason = "expired"
        }
        if let reason {
            let resync = IPCEvent.encoded(
                Resync(reason: reason),
                room: RoomID(room),
                seq: Int64(clamping: last),
                time: unixTime,
                audience: .participants([])
            )
            return [resync]
        }
        return events.filter { $0.seq > seen && interest.includes($0.name, in: room) }
            .map { $0.line }
    }

    /// Gives the name of a room free that cannot go on: its journal is missing or not readable.
    private mutating func bury(_ room: String, at now: Instant) {
        log("room lost with its node", ["room": room], isWarning: true)
        if holds[room]?.hasEnded != true { tellLoss(of: room) }
        emit(.cancelAdoption(room))
        holds[room]?.stage = .burying
        pursue(room, at: now)
    }

    /// Removes the journal of a room that could not go on, once its record says that it has ended.
    ///
    /// Otherwise another node may have taken the room, and needs that journal. A new room of the
    /// same name has its messages behind the end that is known.
    mutating func purgeBuried(_ room: String, upTo end: UInt64?) {
        guard let end, let known = directory[room], isOwn(known.record), known.record.ended else {
            return
        }
        emit(.registry(.purge(journal: room, before: end + 1)))
    }

    /// Time between the turns of two nodes to take a room over.
    static let turnMilliseconds: Int64 = 700
    /// Time after which a node takes back a room that nobody has taken from it.
    static let regretMilliseconds: Int64 = 2_500
}

extension Members {
    /// Returns how many nodes come before this one to take over a room: 0 for the first.
    ///
    /// The least busy come first, of them those of the lost node's region; among equals the room's
    /// name decides, so that a lost node's rooms are spread. Nodes that take no new rooms come
    /// last. The nodes may see different loads: the registry gives the room to one of them.
    func turn(for room: String, of lost: NodeName) -> Int? {
        let alive = table.filter { !$0.value.isLost }
        let least =
            alive.values.filter { $0.record.state == .up }.map(\.record.load).min() ?? 0
        let region = table[lost]?.record.region
        let order = alive.keys.sorted { left, right in
            let place = (group(of: left, least, region), Self.weight(of: left, for: room))
            return place < (group(of: right, least, region), Self.weight(of: right, for: room))
        }
        return order.firstIndex(of: own)
    }

    private func group(of name: NodeName, _ least: Double, _ region: String?) -> Int {
        guard let record = table[name]?.record, record.state == .up else { return 3 }
        guard record.load <= least + Self.preference else { return 2 }
        return record.region == region ? 0 : 1
    }

    /// Pseudorandom number of a node for a room (FNV-1a, with a final mix).
    private static func weight(of name: NodeName, for room: String) -> UInt64 {
        var hash: UInt64 = 0xcbf2_9ce4_8422_2325
        for byte in Array(name.rawValue.utf8) + [0] + Array(room.utf8) {
            hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3
        }
        hash = (hash ^ hash >> 32) &* 0xd6e8_feb8_6659_fd93
        return hash ^ hash >> 32
    }
}
