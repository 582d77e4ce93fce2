import Contract
import JSON
package import RTP
import Rooms
import WorkerInterface

// Rooms that move between the nodes of a cluster, by way of its journal.

/// Room as the journal has it, with the clocks of the node that wrote it.
package struct JournaledRoom: Hashable, Sendable {
    package var name: String
    /// Records by their keys, as `SavedChange` has them.
    package var records: [String: [UInt8]]
    /// A moment on the writer's monotonic clock.
    package var instant: Instant
    /// The same moment as Unix time, in seconds.
    package var unixTime: Double

    package init(name: String, records: [String: [UInt8]], instant: Instant, unixTime: Double) {
        self.name = name
        self.records = records
        self.instant = instant
        self.unixTime = unixTime
    }
}

extension ControlPlane {
    /// Goes on with a room of a lost node; returns the number of the last event from there.
    ///
    /// A room whose records cannot be read, or that is one too many, is left out and logged
    /// (`nil`).
    package mutating func adopt(
        _ room: JournaledRoom,
        at now: Instant,
        unixTime: Double
    ) -> UInt64? {
        clock = WallClock(instant: now, unixTime: unixTime)
        setTime(now)
        var records = RestoredRecords()
        for (key, value) in room.records {
            guard let (kind, name, part) = RoomRecords.parts(of: key), name == room.name else {
                continue
            }
            records.add(kind, part, value)
        }
        // The room had ended.
        guard records.room != nil else { return nil }
        do {
            return try adopt(room, records, at: now)
        } catch {
            journals.abandon(room.name)
            let fields = [("room", room.name), ("error", "\(error)")]
            output.append(.log(.error, "room cannot be taken over", fields))
            return nil
        }
    }

    private mutating func adopt(
        _ room: JournaledRoom,
        _ records: RestoredRecords,
        at now: Instant
    ) throws -> UInt64 {
        guard rooms[room.name] == nil, rooms.count < setup.limits.rooms else {
            throw UnreadableRecord(cause: "there is no place for the room")
        }
        let shift = room.shift(to: clock)
        let own: RoomRecord = try RestoredRecords.decode(records.room, shift: shift)
        let settings: SettingsRecord = try RestoredRecords.decode(records.settings, shift: shift)
        let people: [ParticipantRecord] = try records.participants.map {
            try RestoredRecords.decode($0, shift: shift)
        }
        let parts = Room.ForeignParts(
            own.room,
            settings: settings.room,
            participants: people.map(\.participant),
            streams: try records.streams.map { try RestoredRecords.decode($0, shift: shift) },
            subscriptions: try records.subscriptions.map {
                try RestoredRecords.decode($0, shift: shift)
            }
        )
        let saved: EventJournals.SavedJournal = try RestoredRecords.decode(records.journal)
        guard own.room.name == room.name, saved.numbered < Self.mostNumbered,
            parts.lastSubscription < Self.mostNumbered
        else { throw UnreadableRecord(cause: "a name or number is not possible") }
        let taken = try Room.takeOver(
            parts,
            at: setup.node ?? "",
            because: .nodeLost,
            worker: rooms.leastLoadedWorker(shared.identifiers),
            &shared
        )
        var entry = RoomEntry(room: taken.room, settings: settings.shown, setup)
        try entry.restore(settings, people, own, records)
        // So that no subscription here gets the name of one there.
        shared.lastSubscription = max(shared.lastSubscription, parts.lastSubscription)
        journals.adopt(room.name, saved, records.events)
        rooms.open(entry)
        let fields = [("room", room.name), ("participants", "\(people.count)")]
        output.append(.log(.info, "room taken over", fields))
        conclude(Room.Outcome(change: taken.change), in: room.name, at: now)
        return saved.numbered
    }

    /// Ends this node's copy of a room that goes on at another one: its transports close, and
    /// nobody hears of it.
    package mutating func abandon(_ name: String, at now: Instant) {
        guard rooms[name] != nil else { return }
        setTime(now)
        operations.silence(journals.underWay(name))
        let close = Room.Call.close(by: nil, reason: Room.EndReason.nodeLost)
        guard var outcome = try? apply(close, in: RoomID(name)) else { return }
        outcome.change = outcome.change.silent
        conclude(outcome, in: name, at: now)
        journals.abandon(name)
    }

    /// Events that are kept of a room, oldest first, with their numbers.
    package func keptEvents(of room: String) -> [(seq: UInt64, event: EventLine)] {
        journals.kept(room)
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
    /// Negotiations have ICE passwords, and mean nothing without their transports.
    package var journaled: SavedChange? {
        switch RoomRecords.parts(of: key)?.kind {
        case .room, .settings, .participant, .stream, .subscription, .message, .subscriber,
            .journal, .event:
            SavedChange(key: key, value: publicValue ?? value)
        case .process, .mirrors, .negotiation, nil: nil
        }
    }
}
