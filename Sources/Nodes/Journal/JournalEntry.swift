package import RTP

/// Record of a room as its journal keeps it; without a value, it is removed.
package struct JournalRecord: Hashable, Sendable {
    package var key: String
    package var value: [UInt8]?

    package init(key: String, value: [UInt8]?) {
        self.key = key
        self.value = value
    }
}

/// One moment on the two clocks of a node.
package struct JournalClock: Hashable, Sendable {
    /// Monotonic time of the node.
    package var instant: Instant
    /// Unix time, in seconds.
    package var unixTime: Double

    package init(instant: Instant, unixTime: Double) {
        self.instant = instant
        self.unixTime = unixTime
    }
}

/// Message of a room's journal: a part of a group of changes, or the mark of a new home.
///
/// Version (1 byte), kind (1), whether it is the last of its group (1), group, term, instant (8
/// each), Unix time (8, a double), home, boot; then the number of changes and for each a key,
/// whether there is a value (1), and the value. Texts and values have their length in 4 bytes
/// before them.
struct JournalEntry: Hashable, Sendable {
    enum Kind: UInt8 {
        /// The room has another home from here on.
        case fence = 1
        case changes = 2
        /// All records of the room; those before do not count any longer.
        case snapshot = 3
    }

    var kind: Kind
    var isLast: Bool
    /// Number of the group, of its writer's own.
    var group: UInt64
    var term: UInt64
    var clock: JournalClock
    var home: NodeName
    /// Life of the home.
    var boot: String
    var records: [JournalRecord] = []

    static let version: UInt8 = 1
    /// Most bytes of records in one message; NATS servers take messages of 1 MiB by default.
    static let byteLimit = 512 << 10
    /// Longest single record; a longer one keeps its room from being journaled.
    static let recordLimit = 960 << 10

    var encoded: [UInt8] {
        var writer = LinkWriter()
        writer.byte(Self.version)
        writer.byte(kind.rawValue)
        writer.byte(isLast ? 1 : 0)
        writer.number(group)
        writer.number(term)
        writer.number(UInt64(bitPattern: clock.instant.nanoseconds))
        writer.number(clock.unixTime.bitPattern)
        writer.bytes(Array(home.rawValue.utf8))
        writer.bytes(Array(boot.utf8))
        writer.length(records.count)
        for record in records {
            writer.bytes(Array(record.key.utf8))
            writer.byte(record.value == nil ? 0 : 1)
            if let value = record.value { writer.bytes(value) }
        }
        return writer.body
    }

    /// Reads a message; `nil` if it is malformed or of another version.
    init?(_ bytes: [UInt8]) {
        var reader = LinkReader(rest: bytes[...])
        guard reader.byte() == Self.version, let kind = reader.byte().flatMap(Kind.init(rawValue:)),
            let last = reader.byte(), last <= 1, let group = reader.number(),
            let term = reader.number(), let instant = reader.number(),
            let unixTime = reader.number().map(Double.init(bitPattern:)), unixTime.isFinite,
            let home = reader.text().flatMap(NodeName.init(rawValue:)), let boot = reader.text(),
            let count = reader.length()
        else { return nil }
        let clock = JournalClock(
            instant: Instant(nanoseconds: Int64(bitPattern: instant)),
            unixTime: unixTime
        )
        self.init(
            kind: kind,
            isLast: last == 1,
            group: group,
            term: term,
            clock: clock,
            home: home,
            boot: boot
        )
        for _ in 0..<count {
            guard let key = reader.text(), let hasValue = reader.byte(), hasValue <= 1 else {
                return nil
            }
            guard hasValue == 1 else {
                records.append(JournalRecord(key: key, value: nil))
                continue
            }
            guard let value = reader.bytes() else { return nil }
            records.append(JournalRecord(key: key, value: value))
        }
        guard reader.isAtEnd else { return nil }
    }

    init(
        kind: Kind,
        isLast: Bool,
        group: UInt64,
        term: UInt64,
        clock: JournalClock,
        home: NodeName,
        boot: String
    ) {
        self.kind = kind
        self.isLast = isLast
        self.group = group
        self.term = term
        self.clock = clock
        self.home = home
        self.boot = boot
    }
}

/// A room's records, put together from the messages of its journal.
package struct JournalContents: Hashable, Sendable {
    package private(set) var records: [String: [UInt8]] = [:]
    /// Clocks of the node that wrote the records; `nil` if there are none.
    package private(set) var clock: JournalClock?
    /// That node, and its life: a new home writes all records again.
    package private(set) var home: NodeName?
    package private(set) var boot = ""

    /// Puts messages together, oldest first.
    ///
    /// A group whose last message is missing does not count: its writer was lost meanwhile, and
    /// nobody was told that it was stored. Returns `nil` if a message cannot be read.
    package init?(_ messages: [[UInt8]]) {
        var staged: [JournalEntry] = []
        for message in messages {
            guard let entry = JournalEntry(message) else { return nil }
            if let first = staged.first, !first.isSameGroup(as: entry) { staged = [] }
            staged.append(entry)
            guard entry.isLast else { continue }
            apply(staged)
            staged = []
        }
    }

    private mutating func apply(_ group: [JournalEntry]) {
        guard let first = group.first else { return }
        switch first.kind {
        case .fence: return
        case .changes: break
        case .snapshot: records = [:]
        }
        clock = first.clock
        (home, boot) = (first.home, first.boot)
        for record in group.flatMap(\.records) { records[record.key] = record.value }
    }
}

extension JournalEntry {
    fileprivate func isSameGroup(as other: Self) -> Bool {
        boot == other.boot && group == other.group && kind == other.kind
    }
}
