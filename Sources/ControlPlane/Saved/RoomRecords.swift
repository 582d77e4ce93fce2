import Contract
import JSON
import RTP
import Rooms
import WorkerInterface

/// Keys of the records that are saved.
///
/// A key is a letter, the room's name and a name within the room, between slashes. No room's name
/// has a slash.
struct RoomRecords {
    enum Kind: String {
        case process = "x"
        case room = "r"
        case settings = "c"
        case participant = "p"
        case stream = "s"
        case subscription = "u"
        case mirrors = "i"
        case negotiation = "n"
        case message = "m"
        case subscriber = "b"
        case journal = "j"
        case event = "e"
        /// A transport of another home's room; the home has the place of the room.
        case guest = "g"
    }

    static let processKey = "x"
    /// Key of the numbers that the workers of other nodes have here.
    static let placesKey = "y"

    static func key(_ kind: Kind, _ room: String, _ name: String = "") -> String {
        "\(kind.rawValue)/\(room)/\(name)"
    }

    /// Splits a key; `nil` if it is none.
    static func parts(of key: String) -> (kind: Kind, room: String, name: String)? {
        let parts = key.split(separator: "/", maxSplits: 2, omittingEmptySubsequences: false)
        guard parts.count == 3, let kind = Kind(rawValue: String(parts[0])) else { return nil }
        return (kind, String(parts[1]), String(parts[2]))
    }

    /// Keys of each room's records, other than its journal's, to remove them with the room.
    private var keys: [String: Set<String>] = [:]
    /// Record of the process as last saved.
    var process: [UInt8] = []
    /// Whether the record of the other nodes' workers is to be saved.
    var hasNewPlaces = false

    /// Notes a change of a record of a room.
    mutating func note(_ change: SavedChange, of room: String) {
        if change.value == nil {
            keys[room]?.remove(change.key)
        } else {
            keys[room, default: []].insert(change.key)
        }
    }

    /// Returns the removals of all records of a room.
    mutating func removeAll(of room: String) -> [SavedChange] {
        let removed = keys.removeValue(forKey: room) ?? []
        return removed.sorted().map { SavedChange(key: $0, value: nil) }
    }
}

/// A record that says something impossible.
struct UnreadableRecord: Error { let cause: String }

/// The process's own record: numbers that are never given twice.
struct ProcessRecord: Codable {
    /// Highest generations of a worker's handles.
    struct Generations: Codable {
        var transports: UInt32
        var publications: UInt32
        var slots: UInt32
    }

    var boot: String
    var lastSubscription: UInt64
    var lastTap: OutputID
    var generations: [Generations]
}

/// A room's own record.
struct RoomRecord: Codable {
    var room: Room.Saved
    var lastMessage: UInt64

    var withoutSecrets: Self { Self(room: room.withoutSecrets, lastMessage: lastMessage) }
}

/// Record of a room's settings: much of it, and rarely changed.
struct SettingsRecord: Codable, Hashable {
    var room: Room.Settings
    /// Settings as shown, with defaults filled in.
    var shown: RoomSettings
    /// Callers' custom data of the room.
    var custom: JSON
}

/// Record of a participant.
struct ParticipantRecord: Codable {
    var participant: Room.SavedParticipant
    var custom: JSON?
}

extension ControlPlane {
    /// Returns the records that have changed since the last call.
    mutating func takeUnsaved() -> [SavedChange] {
        var changes: [SavedChange] = []
        for name in rooms.entries.takeChanged().sorted() {
            // A room of the same name may have ended before.
            if rooms.entries[name]?.savedRecord.isEmpty == true {
                changes += rooms.records.removeAll(of: name)
            }
            let own = rooms.entries.withValue(of: name) { $0.takeChanges() }
            // That access is none to be saved.
            rooms.entries.forgetChange(of: name)
            guard let own else {
                changes += rooms.records.removeAll(of: name)
                continue
            }
            for change in own { rooms.records.note(change, of: name) }
            changes += own
        }
        changes += takeUnsavedEvents()
        changes += places?.guests.takeUnsaved() ?? []
        if rooms.records.hasNewPlaces {
            rooms.records.hasNewPlaces = false
            let places = JSON.compact(shared.remote?.saved ?? [])
            changes.append(SavedChange(key: RoomRecords.placesKey, value: places))
        }
        // The boot id is saved before there are rooms.
        let hasNewMirrors = places?.guests.hasNewMirrors == true
        if hasNewMirrors { places?.guests.hasNewMirrors = false }
        guard !changes.isEmpty || rooms.records.process.isEmpty || hasNewMirrors else { return [] }
        let process = JSON.compact(processRecord)
        if process != rooms.records.process {
            rooms.records.process = process
            changes.append(SavedChange(key: RoomRecords.processKey, value: process))
        }
        return changes
    }

    private mutating func takeUnsavedEvents() -> [SavedChange] {
        var changes: [SavedChange] = []
        let unsaved = journals.takeUnsaved()
        for room in unsaved.journals.union(unsaved.events.keys).sorted() {
            let journal = journals.saved(room).map(JSON.compact)
            changes.append(SavedChange(key: RoomRecords.key(.journal, room), value: journal))
            for (seq, event) in (unsaved.events[room] ?? [:]).sorted(by: { $0.key < $1.key }) {
                let key = RoomRecords.key(.event, room, "\(seq)")
                let value = event.map { Array("\($0.name)\n".utf8) + $0.line }
                changes.append(SavedChange(key: key, value: value))
            }
        }
        return changes
    }

    private var processRecord: ProcessRecord {
        ProcessRecord(
            boot: setup.bootID,
            lastSubscription: shared.lastSubscription,
            lastTap: shared.taps?.lastID ?? 0,
            generations: shared.identifiers.map { identifiers in
                ProcessRecord.Generations(
                    transports: identifiers.transports.highest,
                    publications: identifiers.publications.highest,
                    slots: identifiers.slots.highest
                )
            }
        )
    }
}

extension RoomEntry {
    /// Returns the room's records that have changed since the last call, but no events.
    fileprivate mutating func takeChanges() -> [SavedChange] {
        let name = room.name
        var changes: [SavedChange] = []
        func change(_ kind: RoomRecords.Kind, _ part: String, _ value: [UInt8]?) {
            let key = RoomRecords.key(kind, name, part)
            changes.append(SavedChange(key: key, value: value))
        }
        let parts = room.takeUnsavedParts()
        for id in takeUnsavedCustoms().union(parts.participants.keys).sorted() {
            let record = room.saved(participant: id).map {
                JSON.compact(ParticipantRecord(participant: $0, custom: customs[id]))
            }
            change(.participant, id, record)
        }
        for (id, stream) in parts.streams.sorted(by: { $0.key < $1.key }) {
            change(.stream, id, stream.map(JSON.compact))
        }
        for (number, part) in parts.subscriptions.sorted(by: { $0.key < $1.key }) {
            change(.subscription, "\(number)", part.map(JSON.compact))
        }
        for (transport, negotiation) in parts.negotiations.sorted(by: { $0.key < $1.key }) {
            change(.negotiation, transport, negotiation.map(JSON.compact))
        }
        for (home, mirrors) in parts.mirrors.sorted(by: { $0.key < $1.key }) {
            change(.mirrors, home, mirrors.map(JSON.compact))
        }
        let board = messages.takeUnsaved()
        for (subscriber, isSubscribed) in board.subscribers {
            change(.subscriber, subscriber.name, isSubscribed ? [] : nil)
        }
        for (number, record) in board.messages.sorted(by: { $0.key < $1.key }) {
            change(.message, "\(number)", record)
        }
        let settings = SettingsRecord(room: room.settings, shown: settings, custom: custom)
        if settings != savedSettings {
            savedSettings = settings
            change(.settings, "", JSON.compact(settings))
        }
        let own = RoomRecord(room: room.saved, lastMessage: messages.lastNumber)
        let record = JSON.compact(own)
        if record != savedRecord {
            savedRecord = record
            change(.room, "", record)
            if own.room.hasSecrets {
                changes[changes.count - 1].publicValue = JSON.compact(own.withoutSecrets)
            }
        }
        return changes
    }
}
