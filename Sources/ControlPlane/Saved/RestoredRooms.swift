import Contract
import JSON
package import RTP
import Rooms
import WorkerInterface

// A control plane that goes on with the rooms of an earlier process.

extension ControlPlane {
    /// Restores the rooms from the records that an earlier process has saved.
    ///
    /// The output then builds all workers from nothing and saves everything anew. When all of them
    /// are done, they are to be told `WorkerCommand.endResumption`, or `postponeResumption` while
    /// other homes are awaited (`awaitsHomes`). A room with a record that
    /// cannot be read is left out and logged; without the process's own record, all are.
    ///
    /// `now` is the time on the monotonic clock of the earlier process; `unixTime` is the same
    /// moment, in seconds.
    package init(
        _ setup: ControlSetup,
        restoring saved: [String: [UInt8]],
        at now: Instant,
        unixTime: Double
    ) {
        self.init(setup)
        clock = WallClock(instant: now, unixTime: unixTime)
        setTime(now)
        restore(saved, at: now)
    }

    private mutating func restore(_ saved: [String: [UInt8]], at now: Instant) {
        guard !saved.isEmpty else { return }
        let process: ProcessRecord
        do {
            process = try RestoredRecords.decode(saved[RoomRecords.processKey])
        } catch {
            output.append(.log(.error, "saved rooms are left out", [("error", "\(error)")]))
            return
        }
        take(bootID: process.boot)
        shared.lastSubscription = max(shared.lastSubscription, process.lastSubscription)
        shared.taps?.lastID = process.lastTap
        restorePlaces(saved[RoomRecords.placesKey])
        var groups: [String: RestoredRecords] = [:]
        for (key, value) in saved {
            guard let (kind, room, name) = RoomRecords.parts(of: key), kind != .guest else {
                continue
            }
            groups[room, default: RestoredRecords()].add(kind, name, value)
        }
        for (name, records) in groups.sorted(by: { $0.key < $1.key }) {
            restore(name, records)
        }
        shared.skipNumbers(of: rooms.entries.values.map(\.room))
        restoreHandles(process, saved, at: now)
        awaitPlaces(at: now)
        for name in rooms.names {
            guard let change = rooms.entries[name]?.room.rebuildWorkers(&shared) else { continue }
            conclude(Room.Outcome(change: change), in: name, at: now)
        }
        loseRestoredPlaces(at: now)
    }

    private mutating func restore(_ name: String, _ records: RestoredRecords) {
        do {
            try journals.restore(name, RestoredRecords.decode(records.journal), records.events)
            guard records.room != nil else { return }
            rooms.open(try RoomEntry(records, shared, setup))
        } catch {
            journals.close(name)
            let fields = [("room", name), ("error", "\(error)")]
            output.append(.log(.error, "saved room is left out", fields))
        }
    }

    /// Gives the workers of other nodes the numbers that restored rooms have for them.
    private mutating func restorePlaces(_ record: [UInt8]?) {
        guard shared.remote != nil, let record else { return }
        let places: [Room.SavedPlace]? = try? RestoredRecords.decode(record)
        shared.restorePlaces(places ?? [], setup.limits.identifiers)
        rooms.records.hasNewPlaces = true
    }

    /// Makes the pools of handles, so that no handle is given twice.
    private mutating func restoreHandles(
        _ process: ProcessRecord,
        _ saved: [String: [UInt8]],
        at now: Instant
    ) {
        var used: [Int: Room.Handles] = [:]
        for entry in rooms.entries.values {
            for (worker, handles) in entry.room.handles {
                used[worker, default: Room.Handles()].add(handles)
            }
        }
        restoreGuests(saved, &used, at: now)
        if shared.remote != nil, let last = used.keys.max() {
            shared.addPools(upTo: last + 1, setup.limits.identifiers)
        }
        for worker in shared.identifiers.indices {
            let highest =
                process.generations.indices.contains(worker)
                ? process.generations[worker] : nil
            shared.identifiers[worker].restore(
                used[worker] ?? Room.Handles(),
                transportsAbove: highest?.transports ?? 0,
                publicationsAbove: highest?.publications ?? 0,
                slotsAbove: highest?.slots ?? 0
            )
        }
    }

}

/// Records of one room.
struct RestoredRecords {
    var room: [UInt8]?
    var settings: [UInt8]?
    var journal: [UInt8]?
    var participants: [[UInt8]] = []
    var streams: [[UInt8]] = []
    var subscriptions: [[UInt8]] = []
    var negotiations: [[UInt8]] = []
    var mirrors: [[UInt8]] = []
    var messages: [[UInt8]] = []
    var subscribers: [String] = []
    var events: [UInt64: EventLine] = [:]

    mutating func add(_ kind: RoomRecords.Kind, _ name: String, _ value: [UInt8]) {
        switch kind {
        case .process, .guest: break
        case .room: room = value
        case .settings: settings = value
        case .journal: journal = value
        case .participant: participants.append(value)
        case .stream: streams.append(value)
        case .subscription: subscriptions.append(value)
        case .negotiation: negotiations.append(value)
        case .mirrors: mirrors.append(value)
        case .message: messages.append(value)
        case .subscriber: subscribers.append(name)
        case .event:
            guard let seq = UInt64(name), let end = value.firstIndex(of: UInt8(ascii: "\n")) else {
                return
            }
            let event = String(decoding: value[..<end], as: UTF8.self)
            events[seq] = EventLine(name: event, line: Array(value[(end + 1)...]))
        }
    }

    static func decode<Record: Decodable>(_ bytes: [UInt8]?) throws -> Record {
        try decode(bytes, shift: 0)
    }

    /// Decodes a record of another host, whose clock is `shift` nanoseconds behind.
    static func decode<Record: Decodable>(
        _ bytes: [UInt8]?,
        shift: Int64
    ) throws -> Record {
        let information: [CodingUserInfoKey: Any] =
            if let key = Instant.shiftKey { [key: shift] } else { [:] }
        return try JSON(parsingCompact: bytes ?? [])
            .decode(Record.self, isClosed: false, information)
    }
}

extension RoomEntry {
    fileprivate init(
        _ records: RestoredRecords,
        _ shared: Room.Shared,
        _ setup: ControlSetup
    ) throws {
        let own: RoomRecord = try RestoredRecords.decode(records.room)
        let settings: SettingsRecord = try RestoredRecords.decode(records.settings)
        let people: [ParticipantRecord] = try records.participants.map(RestoredRecords.decode)
        let room = try Room(
            own.room,
            settings: settings.room,
            participants: people.map(\.participant),
            streams: records.streams.map(RestoredRecords.decode),
            subscriptions: records.subscriptions.map(RestoredRecords.decode),
            negotiations: records.negotiations.map(RestoredRecords.decode),
            mirrors: records.mirrors.map(RestoredRecords.decode),
            shared: shared
        )
        self.init(room: room, settings: settings.shown, setup)
        try restore(settings, people, own, records)
    }
}

extension RoomEntry {
    /// Restores the callers' data and the kept messages.
    mutating func restore(
        _ settings: SettingsRecord,
        _ people: [ParticipantRecord],
        _ own: RoomRecord,
        _ records: RestoredRecords
    ) throws {
        custom = settings.custom
        for record in people {
            guard let custom = record.custom else { continue }
            keep(custom, for: record.participant.id)
        }
        try messages.restore(
            records.subscribers.map { name in
                guard let subscriber = Subscriber(name: name) else {
                    throw UnreadableRecord(cause: "a subscription to a topic has no name")
                }
                return subscriber
            },
            records.messages.map { try JSON(parsingCompact: $0) }
        )
        messages.restore(lastNumber: own.lastMessage)
    }
}
