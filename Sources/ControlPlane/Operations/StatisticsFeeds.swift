import Contract
import RTP
import Rooms
import WorkerInterface

/// Subscriptions of connections to statistics (`stats.subscribe`).
///
/// The work is done in turns, one at a time for all subscriptions together. A turn asks the workers
/// once for a bounded number of transports, of as many rooms as these make, or of a part of a large
/// room. The next turn comes 20 ms later at the earliest and only when all workers have answered.
/// So a turn delays calls by a millisecond or two however many rooms there are; where there is more
/// to report than the turns of an interval take, the interval is longer.
struct StatisticsFeeds {
    /// Subscription of one connection.
    struct Feed {
        /// Rooms in order; `nil` for all.
        var rooms: [String]?
        var intervalMilliseconds: Int64
        /// Start of the present round through the rooms, or of the next.
        var roundStart: Instant
        /// Time of the next turn.
        var due: Instant
        /// Last that the present round has reported on; `nil` between two rounds.
        var position: Position?
    }

    /// Place in a round: a room, and the part of it that was reported on.
    struct Position {
        var room: String
        /// Creation number of the last participant; `nil` once the room is complete.
        var participant: UInt64?
        var part: Int
    }

    /// Participants of one room whose statistics make one event.
    struct Part {
        var room: String
        var participants: [String] = []
        var number: Int
        var isLast = true
    }

    /// Turn whose answers are awaited.
    struct Turn {
        var connection: ConnectionID
        var parts: [Part]
        var token: UInt64
        var waiting: Set<Int>
        var answers: [Int: WorkerStatistics] = [:]
    }

    private var feeds: [ConnectionID: Feed] = [:]
    private var turn: Turn?
    /// Earliest time of the next turn.
    private var earliest = Instant(nanoseconds: 0)

    /// Entries of one turn: some milliseconds of work, and lines far below 1 MiB.
    static let entriesPerTurn = 400
    /// Time from one turn to the next.
    static let turnMilliseconds: Int64 = 20

    var count: Int { feeds.count + (turn == nil ? 0 : 1) }

    /// Time of the next turn; `nil` while one is under way.
    var deadline: Instant? {
        guard turn == nil, let due = feeds.values.map(\.due).min() else { return nil }
        return max(due, earliest)
    }

    /// Sets the subscription of a connection, in place of an earlier one.
    mutating func subscribe(
        _ connection: ConnectionID,
        to rooms: [String]?,
        seconds: Int,
        at now: Instant
    ) {
        unsubscribe(connection)
        feeds[connection] = Feed(
            rooms: rooms.map { Set($0).sorted() },
            intervalMilliseconds: Int64(seconds) * 1_000,
            roundStart: now,
            due: now
        )
    }

    mutating func unsubscribe(_ connection: ConnectionID) {
        feeds[connection] = nil
        if turn?.connection == connection { turn = nil }
    }

    /// Returns the subscription whose turn it is, if one is due.
    func next(at now: Instant) -> (connection: ConnectionID, feed: Feed)? {
        guard let deadline, deadline <= now else { return nil }
        let first = feeds.min { ($0.value.due, $0.key.rawValue) < ($1.value.due, $1.key.rawValue) }
        return first.map { ($0.key, $0.value) }
    }

    /// Begins a turn, which has brought the round to `position`; `nil` ends the round.
    mutating func begin(_ turn: Turn, at position: Position?, _ now: Instant) {
        earliest = now.advanced(milliseconds: Self.turnMilliseconds)
        self.turn = turn.parts.isEmpty ? nil : turn
        guard var feed = feeds[turn.connection] else { return }
        feed.position = position
        feed.due = earliest
        if position == nil {
            feed.roundStart = feed.roundStart.advanced(milliseconds: feed.intervalMilliseconds)
            // A round that took longer than its interval is followed by the next one.
            feed.roundStart = max(feed.roundStart, now)
            feed.due = max(feed.roundStart, earliest)
        }
        feeds[turn.connection] = feed
    }

    /// Adds a worker's answer, and takes the turn if it was the last awaited.
    mutating func collect(
        _ statistics: WorkerStatistics,
        _ token: UInt64,
        from worker: Int
    ) -> Turn? {
        guard turn?.token == token, turn?.waiting.remove(worker) != nil else { return nil }
        turn?.answers[worker] = statistics
        return takeComplete()
    }

    /// Token of the turn, if it waits for a worker.
    func tokens(awaiting worker: Int) -> [UInt64] {
        turn.map { $0.waiting.contains(worker) ? [$0.token] : [] } ?? []
    }

    /// Takes the turn if no answer is awaited.
    mutating func takeComplete() -> Turn? {
        guard let complete = turn, complete.waiting.isEmpty else { return nil }
        turn = nil
        return complete
    }
}

extension Method {
    static let statisticsMethods = [
        Method(StatsGet.self) { plane, params, caller, _ throws(IPCError) in
            try plane.stats(params, for: caller)
        },
        Method(StatsSubscribe.self) { plane, params, caller, now in
            plane.answer(Done(), to: caller)
            plane.workerRequests.feeds.subscribe(
                caller.connection,
                to: params.rooms?.map(\.rawValue),
                seconds: params.seconds,
                at: now
            )
        },
        Method(StatsUnsubscribe.self) { plane, _, caller, _ in
            plane.workerRequests.feeds.unsubscribe(caller.connection)
            plane.answer(Done(), to: caller)
        },
    ]
}

// Turns.
extension ControlPlane {
    /// Takes the next turn of the statistics that are subscribed to, if it is due.
    mutating func expireStatistics(at now: Instant) {
        guard let (connection, feed) = workerRequests.feeds.next(at: now) else { return }
        setTime(now)
        var picker = PartPicker(after: feed.position)
        picker.pick(from: rooms, feed.rooms)
        var transports: [Int: [TransportID]] = [:]
        for part in picker.parts {
            guard let room = rooms[part.room]?.room else { continue }
            for participant in part.participants.compactMap({ room.participants[$0] }) {
                for place in participant.transports.map(\.place) {
                    transports[place.worker, default: []].append(place.id)
                }
            }
        }
        let turn = StatisticsFeeds.Turn(
            connection: connection,
            parts: picker.parts,
            token: workerRequests.nextToken(),
            waiting: Set(transports.keys.filter { mayPass($0) })
        )
        workerRequests.feeds.begin(turn, at: picker.position, now)
        for (worker, ids) in transports.sorted(by: { $0.key < $1.key }) {
            let question = WorkerCommand.reportTransports(ids, token: turn.token)
            tell(worker, [question])
        }
        if let turn = workerRequests.feeds.takeComplete() { tell(turn) }
    }

    /// Sends the events of a turn.
    mutating func tell(_ turn: StatisticsFeeds.Turn) {
        let figures = ReportedFigures(turn.answers, clock)
        for part in turn.parts {
            guard let room = rooms[part.room]?.room else { continue }
            let found = RoomStatistics(room, figures).result(of: part.participants)
            let line = IPCEvent.encoded(
                RoomStats(
                    transports: found.transports,
                    streams: found.streams,
                    subscriptions: found.subscriptions,
                    part: part.number,
                    next: part.isLast ? nil : part.number + 1
                ),
                room: RoomID(part.room),
                seq: 0,
                time: shared.unixTime,
                audience: .participants([])
            )
            let event = EventLine(name: RoomStats.event, line: line)
            output.append(.statistics(turn.connection, event))
        }
    }
}

/// Choice of the rooms and participants of one turn.
private struct PartPicker {
    private(set) var parts: [StatisticsFeeds.Part] = []
    /// Place that the round has come to; `nil` at its end.
    private(set) var position: StatisticsFeeds.Position?
    private var entries = 0

    init(after position: StatisticsFeeds.Position?) { self.position = position }

    /// Picks from the rooms behind the position, as many as one turn takes.
    mutating func pick(from table: RoomTable, _ wanted: [String]?) {
        if let position, let participant = position.participant {
            guard pick(position.room, in: table, after: participant, part: position.part + 1)
            else { return }
        }
        let start = position?.room
        if let wanted {
            for name in wanted where start.map({ $0 < name }) ?? true {
                guard pick(name, in: table, after: 0, part: 1) else { return }
            }
        } else {
            for name in table.names(after: start) {
                guard pick(name, in: table, after: 0, part: 1) else { return }
            }
        }
        position = nil
    }

    /// Picks from one room; returns `false` if the turn is full.
    private mutating func pick(
        _ name: String,
        in table: RoomTable,
        after birth: UInt64,
        part number: Int
    ) -> Bool {
        // A room counts even if there is nothing in it: a turn also ends after many of these.
        entries += 1
        guard entries < StatisticsFeeds.entriesPerTurn else { return false }
        guard let room = table[name]?.room, birth > 0 || !room.participants.isEmpty else {
            position = StatisticsFeeds.Position(room: name, participant: nil, part: 0)
            return true
        }
        var part = StatisticsFeeds.Part(room: name, number: number)
        var last = birth
        for (id, birth) in room.participants.allNames(after: birth) {
            let weight = room.participants[id]?.statisticsEntries ?? 0
            guard
                entries + weight <= StatisticsFeeds.entriesPerTurn
                    || parts.isEmpty
                        && part.participants.isEmpty
            else {
                part.isLast = false
                break
            }
            entries += weight
            part.participants.append(id)
            last = birth
        }
        // The next turn begins with the rest.
        guard part.isLast || !part.participants.isEmpty else { return false }
        parts.append(part)
        position = StatisticsFeeds.Position(
            room: name,
            participant: part.isLast ? nil : last,
            part: number
        )
        return part.isLast
    }
}

extension Room.Participant {
    /// Number of entries that its statistics have; streams count by their encodings.
    fileprivate var statisticsEntries: Int {
        transports.reduce(1) { $0 + 1 + 4 * $1.tracks.count + $1.slots.count }
    }
}
