import JSON

/// State that a node tells the others of itself.
package enum NodeState: String, Codable, Hashable, Sendable, CaseIterable {
    case up
    /// It takes no new rooms.
    case draining
}

/// A node's record in the registry, `members.<node>`, written each second.
package struct MemberRecord: Codable, Hashable, Sendable {
    /// Identifier of the process's life; the rooms of another life are gone.
    package var boot: String
    /// Versions of the link protocol that it speaks.
    package var protocols: [Int]
    /// `ADDR:PORT` where it takes links.
    package var link: String
    /// SHA-256 of its link certificate, in hexadecimal digits.
    package var fingerprint: String
    package var state: NodeState
    /// Share of time for which its workers are busy: 0 to 1.
    package var load: Double
    package var rooms: Int
    package var participants: Int
    package var region: String?
    /// Rooms that it would take over now; `nil` for a node that takes none that are let go.
    package var places: Int?
    /// Counts the writes of this record.
    package var beat: UInt64

    package init(boot: String, link: String, fingerprint: String, region: String? = nil) {
        self.boot = boot
        protocols = [LinkMessage.version]
        self.link = link
        self.fingerprint = fingerprint
        state = .up
        load = 0
        rooms = 0
        participants = 0
        self.region = region
        beat = 0
    }

    /// Whether the figures are within their ranges.
    var isValid: Bool { (0...1).contains(load) && rooms >= 0 && participants >= 0 }
}

/// A room's record in the registry, `rooms.<token>`; changed by compare-and-set only.
package struct RoomRecord: Codable, Hashable, Sendable {
    /// Node that runs the room.
    package var home: NodeName
    /// Life of the home that has the room.
    package var boot: String
    /// Grows with each new home.
    package var term: UInt64
    /// Nodes that share the room; at present the home alone.
    package var nodes: [NodeName]
    /// Whether the room has ended with its home, so that its name is free.
    package var ended: Bool
    /// Whether its home has let the room go, for another node to take it over; `nil`: no.
    package var isLeft: Bool?

    package init(home: NodeName, boot: String, term: UInt64) {
        self.home = home
        self.boot = boot
        self.term = term
        nodes = [home]
        ended = false
    }

    /// Whether its home has the room.
    var goesOn: Bool { !ended && isLeft != true }

    /// Whether a next term can follow.
    var isValid: Bool { term < Self.termLimit }

    /// Terms below this are whole numbers in all implementations of JSON (RFC 8259 §6).
    static let termLimit: UInt64 = 1 << 53
}

/// Key of the registry's bucket.
enum RegistryKey {
    case member(NodeName)
    case room(String)

    /// Returns `nil` for a key that is none of ours.
    init?(_ text: String) {
        let parts = text.split(separator: ".", maxSplits: 1).map(String.init)
        guard parts.count == 2, let kind = parts.first, let token = parts.last else { return nil }
        switch kind {
        case "members":
            guard let name = NodeName(rawValue: token) else { return nil }
            self = .member(name)
        case "rooms":
            guard let room = RoomKey.room(of: token) else { return nil }
            self = .room(room)
        default: return nil
        }
    }

    var text: String {
        switch self {
        case .member(let name): "members.\(name)"
        case .room(let room): "rooms.\(RoomKey.token(of: room))"
        }
    }
}

extension JSON {
    /// Decodes a record of the registry; `nil` if it is none, as others may write there too.
    static func record<Record: Decodable>(_ type: Record.Type, of bytes: [UInt8]) -> Record? {
        guard bytes.count <= 65_536, let json = try? JSON(parsing: bytes) else { return nil }
        return try? json.decode(type, isClosed: false)
    }
}

/// News from the registry.
package enum RegistryUpdate: Hashable, Sendable {
    /// The broker cannot be reached, for this reason.
    case away(String)
    /// The present entries follow, then `complete`.
    case snapshot
    /// An entry has a new revision; without a value it was deleted.
    case entry(key: String, revision: UInt64, value: [UInt8]?)
    case complete
    case outcome(RegistryOutcome, of: UInt64)
}

/// Outcome of a write or a read.
package enum RegistryOutcome: Hashable, Sendable {
    case stored(revision: UInt64)
    /// The entry's revision is another than was expected.
    case conflict
    case found(revision: UInt64, value: [UInt8]?)
    case absent
    /// Messages of a journal, oldest first, and the sequence of the last one.
    case journal([[UInt8]], last: UInt64)
    /// Rooms that have journals, and the sequence of the last message of all of these.
    case journals([String], last: UInt64)
    /// The broker has not answered; a write may have been stored.
    case failed
}

/// Request to the registry; `number` comes back with the outcome.
package enum RegistryRequest: Hashable, Sendable {
    /// Writes an entry, or deletes it if there is no value.
    case write(number: UInt64, key: String, value: [UInt8]?, WriteCondition)
    case read(number: UInt64, key: String)
    /// Appends to a room's journal, whose last message must have the sequence `last`; 0 for none.
    case append(number: UInt64, journal: String, [UInt8], last: UInt64)
    /// Reads the last message of a room's journal; it is `found`, with its sequence as revision.
    case last(number: UInt64, journal: String)
    /// Reads a room's journal.
    case journal(number: UInt64, journal: String)
    /// Removes what a room's journal has before a sequence.
    case purge(journal: String, before: UInt64)
    /// Lists the rooms that have journals.
    case journals(number: UInt64)
    /// Removes the mark that a deletion has left; an entry that was written since stays.
    case forget(number: UInt64, key: String, revision: UInt64)
    /// Reads all entries again, as a snapshot.
    case watchAgain
}

/// Condition of a write.
package enum WriteCondition: Hashable, Sendable {
    case always
    /// The entry has never been written.
    case absent
    /// The entry's last revision, of a value or of a deletion.
    case revision(UInt64)
}
