package import Contract
package import RTP

// Routing of calls: to this node, to another one, or first to the registry.
extension Cluster {
    /// Takes a call of a connection at this node; it is answered exactly once.
    package mutating func receive(
        _ request: IPCRequest,
        line: [UInt8],
        from connection: UInt64,
        at now: Instant
    ) {
        observe(now)
        let call = PendingCall(request: request, line: line, origin: .here(connection))
        if request.method == EventsSubscribe.name {
            beginWaiting(of: connection, at: now)
            subscribeOnceTaken(call, connection, at: now)
        } else {
            route(call, at: now)
        }
    }

    /// Sends a call where its room is.
    mutating func route(_ call: PendingCall, at now: Instant) {
        guard let room = call.room else {
            return call.isToSubscribe ? goOnSubscribing(call, at: now) : execute(call)
        }
        if holds[room] != nil { return executeHeld(call, room, at: now) }
        if isOrphan(room, at: now) { return wait(call, for: room, at: now) }
        let creates = call.request.method == RoomCreate.name
        if let known = directory[room], known.record.home != setup.name,
            !isOver(known.record, at: now)
        {
            return forward(call, to: known.record, at: now)
        }
        if creates { return place(call, room, at: now) }
        guard directory[room] != nil || call.wasLookedUp else { return lookUp(call, room) }
        // With its room everything ended that could tell whether the call took effect.
        if call.firstNumber != nil { return refuse(call, .outcomeUnknown(setup.name)) }
        execute(call)
    }

    /// Executes a call for a room of this node, or lets it wait until the name is settled.
    private mutating func executeHeld(_ call: PendingCall, _ room: String, at now: Instant) {
        guard let hold = holds[room] else { return }
        switch hold.stage {
        case .held where hold.exists || !hold.takesOver: execute(call)
        case .claiming where hold.exists: execute(call)
        case .held, .leaving, .claiming, .restoring, .burying, .releasing:
            guard hold.waiting.count < NodeList.waitingLimit else {
                return refuse(call, .limitReached("nodeCallsWaiting", NodeList.waitingLimit))
            }
            holds[room]?.waiting.append(call)
        }
    }

    /// Finds the node of a new room.
    private mutating func place(_ call: PendingCall, _ room: String, at now: Instant) {
        // Bad params are refused here, without asking the registry for the name.
        do throws(IPCError) {
            _ = try call.request.params(RoomCreate.Params.self)
        } catch {
            return execute(call)
        }
        guard isSynced else { return refuse(call, .registryAway()) }
        if case .here = call.origin, let target = members.placement(), target != setup.name,
            let member = members[target]
        {
            let record = RoomRecord(home: target, boot: member.record.boot, term: 0)
            return forward(call, to: record, at: now)
        }
        claim(room, for: call, at: now)
    }

    private mutating func lookUp(_ call: PendingCall, _ room: String) {
        guard isSynced else { return refuse(call, .registryAway()) }
        if lookups[room] == nil {
            guard lookups.count < Self.lookupLimit else { return execute(call) }
            lookups[room] = []
            let number = nextNumber()
            registry.purposes[number] = .lookup(room)
            emit(.registry(.read(number: number, key: RegistryKey.room(room).text)))
        }
        guard lookups[room]?.count ?? 0 < NodeList.waitingLimit else {
            return refuse(call, .limitReached("nodeCallsWaiting", NodeList.waitingLimit))
        }
        lookups[room]?.append(call)
    }

    /// Sends the calls on that have waited for a look at the registry.
    mutating func finishLookup(_ room: String, _ outcome: RegistryOutcome, at now: Instant) {
        for var call in lookups.removeValue(forKey: room) ?? [] {
            if outcome == .failed {
                refuse(call, .registryAway())
            } else {
                call.wasLookedUp = true
                route(call, at: now)
            }
        }
    }

    /// Sends a call to the room's home over the link.
    private mutating func forward(_ call: PendingCall, to record: RoomRecord, at now: Instant) {
        guard case .here(let connection) = call.origin else {
            // The caller's node knows less than this one: it asks the registry again.
            guard case .peer(let guest) = call.origin else { return }
            if call.request.method == RoomCreate.name, let room = call.room {
                refuse(call, .alreadyExists(RoomID(room)))
            } else {
                sendAway(guest)
            }
            return
        }
        let home = record.home
        guard members[home] != nil else { return refuse(call, .nodeUnreachable(home)) }
        let waiting = peers[home]?.calls.count ?? 0
        guard waiting < NodeList.waitingLimit else {
            return refuse(call, .limitReached("nodeCallsWaiting", NodeList.waitingLimit))
        }
        let number = nextNumber()
        let outgoing = OutgoingCall(call: call, boot: record.boot, connection: connection, at: now)
        counters.callsForwarded &+= 1
        peers[home, default: Peer()].add(outgoing, number)
        sendCall(number, to: home)
        connectIfNeeded(home, at: now)
    }

    /// Whether a room has ended with its home.
    func isOver(_ record: RoomRecord, at now: Instant) -> Bool {
        if record.ended || record.isLeft == true { return true }
        // An earlier life of this node: its record may not have been overwritten yet.
        if record.home == setup.name, record.boot != setup.boot { return true }
        if members[record.home] == nil {
            // Its node's record may come a moment later, after the registry was lost.
            return registry.syncedSince.map {
                now.milliseconds(since: $0) >= Self.unknownMilliseconds
            } ?? false
        }
        return !members.isAlive(record.home, boot: record.boot)
    }

    /// Rooms looked up at one time; calls for further ones are answered without a look.
    static let lookupLimit = 1_000
    /// Time after which a home without a record counts as lost.
    static let unknownMilliseconds: Int64 = 10_000
}
