import Contract
import JSON
package import RTP
import Rooms
import WorkerInterface

// Rooms that move between the nodes of a cluster, by way of its journal.

/// Room as the journal has it, with the clocks of the node that wrote it.
package struct JournaledRoom: Hashable, Sendable {
    package var name: String
    /// Node that wrote it, and that node's life.
    package var node: String
    package var boot: String
    /// Records by their keys, as `SavedChange` has them.
    package var records: [String: [UInt8]]
    /// A moment on the writer's monotonic clock.
    package var instant: Instant
    /// The same moment as Unix time, in seconds.
    package var unixTime: Double

    package init(
        name: String,
        of node: String,
        _ boot: String,
        records: [String: [UInt8]],
        instant: Instant,
        unixTime: Double
    ) {
        self.name = name
        self.node = node
        self.boot = boot
        self.records = records
        self.instant = instant
        self.unixTime = unixTime
    }
}

extension ControlPlane {
    /// Goes on with a room of a lost node; `takeAdopted` tells when, and whether it does.
    ///
    /// A room whose records cannot be read, or that is one too many, is left out and logged.
    package mutating func adopt(_ room: JournaledRoom, at now: Instant, unixTime: Double) {
        clock = WallClock(instant: now, unixTime: unixTime)
        setTime(now)
        do {
            guard let foreign = try ForeignRoom(room, clock) else {
                // The room had ended.
                return life.adopted.append((room.name, nil))
            }
            begin(foreign, of: FormerHome(node: room.node, boot: room.boot), at: now)
        } catch {
            journals.abandon(room.name)
            let fields = [("room", room.name), ("error", "\(error)")]
            output.append(.log(.error, "room cannot be taken over", fields))
            life.adopted.append((room.name, nil))
        }
    }

    /// Ends this node's copy of a room that goes on at another one: its transports close, and
    /// nobody hears of it.
    package mutating func abandon(_ name: String, at now: Instant) {
        _ = abandon(name, keepingWorkersFrom: .max, at: now)
    }

    /// Ends this node's copy of a room without a word; returns what workers from a number on would
    /// have been told, and are not.
    mutating func abandon(
        _ name: String,
        keepingWorkersFrom first: Int,
        at now: Instant
    ) -> [Int: [WorkerCommand]] {
        guard rooms[name] != nil else { return [:] }
        setTime(now)
        operations.silence(journals.underWay(name))
        let close = Room.Call.close(by: nil, reason: Room.EndReason.nodeLost)
        guard var outcome = try? apply(close, in: RoomID(name)) else { return [:] }
        outcome.change = outcome.change.silent
        let kept = outcome.change.takeCommands(from: first)
        conclude(outcome, in: name, at: now)
        journals.abandon(name)
        return kept
    }

    /// Events that are kept of a room, oldest first, with their numbers.
    package func keptEvents(of room: String) -> [(seq: UInt64, event: EventLine)] {
        journals.kept(room)
    }
}

/// Room of another node, read from its journal.
struct ForeignRoom {
    let name: String
    /// Parts of the room; the nodes of its transports know the mirrors.
    var parts: Room.ForeignParts
    let own: RoomRecord
    let settings: SettingsRecord
    let people: [ParticipantRecord]
    let journal: EventJournals.SavedJournal
    let records: RestoredRecords

    /// Reads a room; `nil` if it had ended.
    init?(_ room: JournaledRoom, _ clock: WallClock) throws {
        var records = RestoredRecords()
        for (key, value) in room.records {
            guard let (kind, name, part) = RoomRecords.parts(of: key), name == room.name else {
                continue
            }
            records.add(kind, part, value)
        }
        guard records.room != nil else { return nil }
        let shift = room.shift(to: clock)
        func all<Record: Decodable>(_ values: [[UInt8]]) throws -> [Record] {
            try values.map { try RestoredRecords.decode($0, shift: shift) }
        }
        name = room.name
        own = try RestoredRecords.decode(records.room, shift: shift)
        settings = try RestoredRecords.decode(records.settings, shift: shift)
        people = try all(records.participants)
        parts = Room.ForeignParts(
            own.room,
            settings: settings.room,
            participants: people.map(\.participant),
            streams: try all(records.streams),
            subscriptions: try all(records.subscriptions),
            mirrors: []
        )
        journal = try RestoredRecords.decode(records.journal)
        self.records = records
        guard own.room.name == room.name, journal.numbered < Self.mostNumbered,
            parts.lastSubscription < Self.mostNumbered
        else { throw UnreadableRecord(cause: "a name or number is not possible") }
    }

    /// Numbers below this one are whole numbers in all implementations of JSON (RFC 8259 §6).
    private static let mostNumbered: UInt64 = 1 << 53
}

extension JournaledRoom {
    /// Nanoseconds to add to the writer's instants.
    fileprivate func shift(to clock: WallClock) -> Int64 {
        let elapsed = (clock.unixTime - unixTime) * 1e9
        let age = Int64(exactly: elapsed.rounded()) ?? 0
        return clock.instant.nanoseconds &- age &- instant.nanoseconds
    }
}

extension SavedChange {
    /// The part of a change that other nodes may read; `nil` if it is nothing to them.
    ///
    /// Negotiations have ICE passwords: the nodes of the transports keep them, and they know the
    /// mirrors.
    package var journaled: SavedChange? {
        switch RoomRecords.parts(of: key)?.kind {
        case .room, .settings, .participant, .stream, .subscription, .message, .subscriber,
            .journal, .event:
            SavedChange(key: key, value: publicValue ?? value)
        case .process, .mirrors, .negotiation, .guest, nil: nil
        }
    }
}
