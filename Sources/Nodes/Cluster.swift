import Contract
package import RTP

/// The part of a node that shares rooms' names and calls with the other nodes.
///
/// Sans-I/O: news of the registry, messages of links, calls and the time go in; requests to the
/// registry, messages, answers and work for the local control plane come out.
package struct Cluster {
    let setup: NodeSetup
    var members: Members
    /// Rooms of all nodes as the registry shows them.
    var directory: [String: KnownRoom] = [:]
    /// Claims of this node to rooms' names.
    var holds: [String: Hold] = [:]
    /// Calls that wait for the registry to say where their room is.
    var lookups: [String: [PendingCall]] = [:]
    /// Rooms that nobody took when they were let go, and the times until which they stay.
    var unwanted: [String: Instant] = [:]
    /// Rooms of which events were left out, as the registry has not told yet that they are at these
    /// nodes.
    var leftOut: [String: NodeName] = [:]
    /// Rooms whose homes are lost.
    var orphans: [String: Orphan] = [:]
    var journaling = Journaling()
    /// Rooms whose names were lost, and which end here.
    var ending: Set<String> = []
    var peers: [NodeName: Peer] = [:]
    /// Event subscriptions of connections at this node.
    var subscriptions: [UInt64: Subscription] = [:]
    /// Calls of other nodes that are executed here, by the connection number that stands for each.
    var guests: [UInt64: Guest] = [:]
    var registry = RegistryState()
    var leftovers = Leftovers()
    var load = NodeLoad()
    var lastNumber: UInt64 = 0
    var lastGuest: UInt64 = Self.firstGuest
    /// Nodes with participants that an earlier process of this home has left there, and the times
    /// until which it may go on with them.
    var returning: [NodeName: Instant] = [:]
    /// Number of the last session about participants of this home at another node.
    var lastSession: UInt64 = 0
    var beat: UInt64 = 0
    private var nextTick: Instant
    /// Time at which this node did something last.
    private(set) var lastActive: Instant
    private var nextTidy: Instant
    private var nextBeat: Instant
    /// Bytes of other nodes' events that wait for the reply to `events.subscribe`, beyond which it
    /// comes at once.
    var earlyLimit = 64 << 20
    /// Unix time in seconds, for events that this node makes.
    package var unixTime = 0.0
    package internal(set) var counters = ClusterCounters()
    private var output: [ClusterOutput] = []

    /// Purposes of the requests to the registry, and how far its news have come.
    struct RegistryState {
        enum Purpose {
            case beat
            case claim(String)
            case release(String)
            /// The mark of a room that is let go to another node.
            case leave(String)
            /// The end of the record of a room that cannot go on.
            case bury(String)
            /// A look at an entry after a write has met a conflict.
            case check(String)
            case lookup(String)
            /// A record that is marked as ended, or removed.
            case tidy
            /// The mark that a removed record has left.
            case forget
            /// The list of all journals.
            case list
            case append(String)
            /// A look at a journal's end after a write has met a conflict.
            case journalEnd(String)
            /// A look at the record of a room that is to be this node's.
            case verify(String)
            /// The journal of a room that is taken over.
            case journal(String)
            /// The first write of a new home.
            case fence(String)
        }

        var purposes: [UInt64: Purpose] = [:]
        /// Keys met in a snapshot that is under way.
        var snapshot: Set<String>?
        /// Removals of held rooms' records met since the last whole snapshot, and whether each came
        /// after the record that this node knew.
        var removals: [String: Bool] = [:]
        /// Whether other nodes may have taken rooms from this one since the last whole snapshot.
        var mayHaveMissed = false
        /// Highest revision that was told since the last snapshot began, and before that.
        var highest: UInt64 = 0
        var highestBefore: UInt64 = 0
        /// Time since which the directory is complete.
        var syncedSince: Instant?
        /// Time until which subscriptions wait for the directory to be complete for the first time;
        /// `nil` from then on.
        var firstReadEnd: Instant?
        /// Subscriptions that wait for that.
        var unread: [PendingCall] = []
        /// Reasons that were told since the directory was complete.
        var causes: Set<String> = []
        var hasBeatUnderWay = false
        var hasLeft = false
        var tidying = 0
    }

    /// Makes the state of a node that starts.
    ///
    /// `rooms` are those that it has kept from before, with the `seq` of each one's last event that
    /// was told. Of these, participants are connected at the nodes of `places`.
    package init(
        _ setup: NodeSetup,
        rooms: [String: UInt64],
        places: [NodeName] = [],
        at now: Instant
    ) {
        self.setup = setup
        let end = now.advanced(milliseconds: Self.returnMilliseconds)
        returning = Dictionary(places.map { ($0, end) }) { first, _ in first }
        members = Members(own: setup.name)
        nextTick = now
        nextTidy = now
        nextBeat = now
        lastActive = now
        registry.firstReadEnd = now.advanced(milliseconds: Self.linkMilliseconds / 2)
        for (room, told) in rooms {
            holds[room] = Hold(term: 1, exists: true, stage: .claiming(until: nil), told: told)
        }
    }

    /// Whether a connection number stands for a call of another node.
    package static func isGuest(_ connection: UInt64) -> Bool { connection >= firstGuest }

    /// Numbers of local connections stay below this one.
    private static let firstGuest: UInt64 = 1 << 48

    mutating func emit(_ item: ClusterOutput) { output.append(item) }

    /// Returns the work in order, and clears it.
    package mutating func takeOutput() -> [ClusterOutput] {
        defer { output = [] }
        return output
    }

    mutating func log(_ message: String, _ fields: [String: String], isWarning: Bool = false) {
        emit(.log(isWarning: isWarning, message, fields))
    }

    mutating func nextNumber() -> UInt64 {
        lastNumber += 1
        return lastNumber
    }

    /// State that this node tells of itself.
    package var state: NodeState { load.state }

    /// Whether the directory is complete and the broker answers.
    package var isSynced: Bool { registry.syncedSince != nil }

    /// Next time that `expire(at:)` has something to do.
    package var deadline: Instant { nextTick }

    /// Does what is due.
    package mutating func expire(at now: Instant) {
        observe(now)
        guard nextTick <= now else { return }
        nextTick = now.advanced(milliseconds: Self.tickMilliseconds)
        for name in members.expire(at: now) { lose(name, at: now) }
        expireHolds(at: now)
        expireOrphans(at: now)
        expireJournals(at: now)
        expireLinks(at: now)
        expireSubscriptions(at: now)
        if nextBeat <= now {
            nextBeat = now.advanced(milliseconds: Self.beatMilliseconds)
            writeBeat(at: now)
            emit(.nodes(list(at: now)))
        }
        guard nextTidy <= now else { return }
        nextTidy = now.advanced(milliseconds: Self.tidyMilliseconds)
        noteOrphans(at: now)
        tidyDirectory(at: now)
    }

    /// Notices that this node has stood still, before anything else is done.
    mutating func observe(_ now: Instant) {
        let pause = now.milliseconds(since: lastActive)
        if pause >= Self.standstillMilliseconds { doubtHolds() }
        // The answers of the broker are there, and are only to be read.
        if pause >= Self.pauseMilliseconds {
            journaling.pausedUntil = now.advanced(milliseconds: Self.durableMilliseconds)
        }
        lastActive = max(lastActive, now)
    }

    /// Notes this node's own figures; they go out with the next beat, or at once with a new state.
    package mutating func note(_ load: NodeLoad, at now: Instant) {
        let isNewState = load.state != self.load.state
        self.load = load
        if isNewState { writeBeat(at: now) }
    }

    /// Lets out what waits for the journals, and removes these, as the process ends.
    ///
    /// The rooms end with that. Carry that out before `leave`, so that nobody takes them for rooms
    /// of a lost node.
    package mutating func endJournals() {
        for room in journaling.rooms.keys.sorted() { dropJournal(of: room) }
    }

    /// Removes this node's record, as the process ends.
    package mutating func leave() {
        registry.hasLeft = true
        write(RegistryKey.member(setup.name), nil as MemberRecord?, .always, for: .beat)
    }

    private mutating func writeBeat(at now: Instant) {
        guard !registry.hasBeatUnderWay, !registry.hasLeft else { return }
        registry.hasBeatUnderWay = true
        beat += 1
        var record = MemberRecord(
            boot: setup.boot,
            link: setup.link,
            fingerprint: setup.fingerprint,
            region: setup.region
        )
        record.state = load.state
        record.load = load.load
        record.rooms = load.rooms
        record.participants = load.participants
        record.places = min(load.places, Int(Int32.max))
        record.beat = beat
        write(RegistryKey.member(setup.name), record, .always, for: .beat)
    }

    /// Answers a call with an error.
    ///
    /// One that was sent to a home that was lost may have taken effect, so no other error is true.
    mutating func refuse(_ call: PendingCall, _ reason: IPCError) {
        var error = reason
        if call.firstNumber != nil {
            error = .outcomeUnknown(call.room.flatMap { holds[$0]?.formerHome } ?? setup.name)
            counters.outcomesUnknown &+= 1
        }
        let line = IPCReply.encoded(id: call.request.id, error: error)
        switch call.origin {
        case .here(let connection): emit(.line(connection: connection, line))
        case .peer(let guest): finishAnswer(guest, line, isStored: true)
        }
    }

    /// Refuses a call that has taken effect at a home that was lost before it answered, or that is
    /// executed here under another number.
    private mutating func tookEffect(_ call: PendingCall, named name: String?) -> Bool {
        guard call.firstNumber != nil, let name, let room = call.room,
            journaling.rooms[room]?.hasCall(name) == true
                || guests.values.contains(where: { $0.name == name && $0.call != nil })
        else { return false }
        refuse(call, .outcomeUnknown(setup.name))
        return true
    }

    /// Lets the local control plane execute a call.
    mutating func execute(_ call: PendingCall, creates room: String? = nil) {
        if let restoring = restoringRoom(of: call) {
            tellMeanwhile(call)
            holds[restoring]?.waiting.append(call)
            return
        }
        // The room may come back, and its next home has to have it before it is asked.
        if let left = leftRoom(of: call) {
            tellMeanwhile(call)
            return wait(call, for: left, at: lastActive)
        }
        switch call.origin {
        case .peer(let guest):
            // It may have been given up while it waited.
            guard guests[guest] != nil else { return }
            if tookEffect(call, named: guests[guest]?.name) { return }
            if waitsForLink(guest, call) { return }
            counters.callsExecuted &+= 1
            let call = withoutMovedRooms(call)
            guests[guest]?.call = call
            emit(.execute(call.request, connection: guest, creates: room))
        case .here(let connection):
            guard call.room != nil else {
                if call.request.method == EventsSubscribe.name {
                    subscriptions[connection]?.isBegun = true
                }
                let request = withoutMovedRooms(call).request
                return emit(.execute(request, connection: connection, creates: room))
            }
            let name = call.firstNumber.map { CallName.text(setup.name, setup.boot, $0) }
            if tookEffect(call, named: name) { return }
            lastGuest += 1
            guests[lastGuest] = Guest(caller: .here(connection), call: call)
            guests[lastGuest]?.name = name
            emit(.execute(call.request, connection: lastGuest, creates: room))
        }
    }

    static let tickMilliseconds: Int64 = 100
    /// Time for which a process that has begun again may go on with participants at other nodes.
    static let returnMilliseconds: Int64 = 4_000
    /// Time without a turn of this node after which others may have taken its rooms.
    static let standstillMilliseconds: Int64 = 1_500
    /// Time without a turn after which replies wait for the journal from then on.
    static let pauseMilliseconds: Int64 = 300
    /// Time between two beats.
    static let beatMilliseconds: Int64 = 500
    /// Time between two looks for records to clear.
    static let tidyMilliseconds: Int64 = 1_000
}
