import Contract

/// What `sfuctl top` shows: the last statistics of each room, and of the server.
struct TopModel {
    private struct RoomReport {
        var transports: [TransportStats] = []
        var streams: [StreamStats] = []
        var subscriptions: [SubscriptionStats] = []

        mutating func add(_ part: RoomStats) {
            transports += part.transports
            streams += part.streams
            subscriptions += part.subscriptions
        }
    }

    private struct Entry {
        var rows: [TopFigures] = []
        /// Last whole report, from which the next one's rates are counted.
        var last: RoomReport?
        /// Parts of a report that is not whole yet.
        var parts: RoomReport?
        var reports = 0
        var changed: Double
    }

    /// A transport within a room.
    private struct Place: Hashable {
        var participant: ParticipantID
        var transport: TransportName
    }

    private var rooms: [RoomID: Entry] = [:]
    private var limits: [SubscriptionID: LayerLimitReason] = [:]
    private(set) var server: ServerStats.Result?
    /// Bits a second of the server; `nil` before its second report.
    private(set) var serverRates: (in: Double, out: Double)?

    /// Seconds without a report after which a room is gone.
    static let patience = 10.0

    /// Takes a `stats` event; `now` are seconds on any clock that does not jump.
    mutating func take(_ part: RoomStats, of room: RoomID, at now: Double) {
        var entry = rooms[room] ?? Entry(changed: now)
        entry.changed = now
        if part.part == 1 { entry.parts = RoomReport() }
        entry.parts?.add(part)
        if part.next == nil, let report = entry.parts {
            entry.rows = Self.rows(report, since: entry.last, in: room)
            entry.last = report
            entry.parts = nil
            entry.reports += 1
        }
        rooms[room] = entry
    }

    mutating func take(_ stats: ServerStats.Result) {
        if let server {
            let seconds = stats.uptimeSeconds - server.uptimeSeconds
            func rate(_ bytes: KeyPath<PacketCounters, UInt64>) -> Double {
                let (old, new) = (server.counters[keyPath: bytes], stats.counters[keyPath: bytes])
                return new < old || seconds <= 0 ? 0 : Double(new - old) * 8 / seconds
            }
            serverRates = (rate(\.bytesIn), rate(\.bytesOut))
        }
        server = stats
    }

    mutating func take(_ limit: LayerLimitReason, of subscription: SubscriptionID) {
        limits[subscription] = limit
    }

    /// Forgets rooms of which nothing has been heard for a while, and limits of no subscription.
    mutating func forget(at now: Double) {
        rooms = rooms.filter { now - $0.value.changed < Self.patience }
        let known = Set(rooms.values.flatMap { $0.rows.flatMap(\.videos) })
        limits = limits.filter { known.contains($0.key) }
    }

    /// Forgets everything, as another process may number anew.
    mutating func reset() { self = Self() }

    /// Whether each of these rooms has been reported on twice, so that its rates are known.
    func isComplete(_ wanted: some Sequence<RoomID>) -> Bool {
        wanted.allSatisfy { (rooms[$0]?.reports ?? 0) > 1 }
    }

    /// Number of participants.
    var count: Int { rooms.values.reduce(0) { $0 + $1.rows.count } }

    /// All participants, in this order.
    func participants(by sort: TopSort) -> [TopFigures] {
        let rows = rooms.values.flatMap(\.rows).map { row in
            var row = row
            row.limit = row.videos.compactMap { limits[$0] }.min { $0.severity < $1.severity }
            return row
        }
        return rows.sorted { ($0.measure(sort), $1.name) > ($1.measure(sort), $0.name) }
    }

    /// All rooms, in this order.
    func rooms(by sort: TopSort) -> [TopRoom] {
        let all = rooms.map { room, entry in
            entry.rows.reduce(into: TopRoom(room)) { $0.add($1) }
        }
        return all.sorted {
            ($0.measure(sort), $1.room.rawValue) > ($1.measure(sort), $0.room.rawValue)
        }
    }

    private static func rows(
        _ report: RoomReport,
        since last: RoomReport?,
        in room: RoomID
    ) -> [TopFigures] {
        var rows: [ParticipantID: TopFigures] = [:]
        var earlier: [Place: TransportStats] = [:]
        for one in last?.transports ?? [] {
            earlier[Place(participant: one.participant, transport: one.transport)] = one
        }
        for one in report.transports {
            let place = Place(participant: one.participant, transport: one.transport)
            let new = TopFigures(
                room: room,
                participant: one.participant,
                connection: one.connection
            )
            rows[one.participant, default: new].add(one, since: earlier[place])
        }
        for one in report.streams { rows[one.participant]?.add(one) }
        for one in report.subscriptions { rows[one.participant]?.add(one) }
        return Array(rows.values)
    }
}

extension TopFigures {
    fileprivate var name: String { "\(room.rawValue) \(participant.rawValue)" }

    /// Value to sort by, largest first; rows without one come last.
    fileprivate func measure(_ sort: TopSort) -> Double {
        switch sort {
        case .name: 0
        case .in: bitrateIn ?? -1
        case .out: bitrateOut ?? -1
        case .loss: loss ?? -1
        case .rtt: roundTripTime ?? -1
        case .jitter: jitter ?? -1
        case .freezes: freezeSeconds
        }
    }
}

extension TopRoom {
    fileprivate func measure(_ sort: TopSort) -> Double {
        switch sort {
        case .name: 0
        case .in: bitrateIn ?? -1
        case .out: bitrateOut ?? -1
        case .loss: loss ?? -1
        case .rtt: roundTripTime ?? -1
        case .jitter: jitter ?? -1
        case .freezes: freezeSeconds
        }
    }
}

extension LayerLimitReason {
    /// Place in the order in which one of several limits is shown: the first is the most urgent.
    fileprivate var severity: Int {
        switch self {
        case .overload: 0
        case .codec: 1
        case .link: 2
        case .bandwidth: 3
        case .publisher: 4
        case .role: 5
        case .preference: 6
        case .muted: 7
        case .approval: 8
        case .subscriber: 9
        case .none: 10
        }
    }
}
