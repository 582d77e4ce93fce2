import RTP

/// Journal of one room of this node: what is written, what is still to be, and what waits for it.
struct RoomJournal {
    /// Reply or event that waits until what it depends on is in the journal.
    struct Held {
        enum Output {
            case reply(guest: UInt64, [UInt8])
            case event(name: String, seq: UInt64, [UInt8])
        }

        var output: Output
        /// Number of the change that has to be stored before.
        var change: UInt64
        /// Time at which it goes out anyway.
        var deadline: Instant
    }

    /// Group of messages that is being written.
    struct Writing {
        /// Number of the last change that it has.
        var change: UInt64
        var isSnapshot: Bool
        var messages: [[UInt8]]
        /// Messages of it that are stored.
        var stored = 0
        /// Sequence of its first message.
        var first: UInt64?
        /// Number of the request that is under way.
        var request: UInt64 = 0
    }

    /// All records of the room as they are now.
    private(set) var records: [String: [UInt8]] = [:]
    private var recordBytes = 0
    /// Keys of the records that have changed since the last group.
    private var changed: Set<String> = []
    /// Number of the last change.
    private(set) var change: UInt64 = 0
    /// Number of the last change that is stored.
    private(set) var stored: UInt64 = 0
    /// Number of the last change whose write was not answered.
    private var doubtful: UInt64 = 0
    var writing: Writing?
    /// Sequence of the journal's last message, as far as is known; 0 for none.
    var last: UInt64 = 0
    /// Whether the next group must have all records.
    var needsSnapshot = true
    /// Messages and bytes since the last snapshot.
    private var messages = 0
    private var bytes = 0
    /// Whether it is in the queue of those to be written.
    var isQueued = false
    /// Whether a look at the journal and the registry is under way, after a write met a conflict.
    var isResolving = false
    /// Whether a record is too long to be written.
    private(set) var isTooLong = false
    private(set) var held: [Held] = []

    /// Calls of other nodes that have changed the room, oldest first.
    private var calls: [String] = []

    /// Makes the journal of a room whose last message is known.
    init(last: UInt64 = 0) { self.last = last }

    /// Makes the journal of a room that is taken over: its calls are known here too.
    init(last: UInt64, of room: String, _ contents: JournalContents) {
        self.last = last
        let known = contents.records.keys.filter { CallName.name(in: $0, of: room) != nil }.sorted()
        calls = known.compactMap { CallName.name(in: $0, of: room) }
        note(known.map { JournalRecord(key: $0, value: []) })
    }

    /// Whether a call has changed the room, as far as is remembered.
    func hasCall(_ name: String) -> Bool { calls.contains(name) }

    /// Notes a call that changes the room; returns the records of it, and of one that is forgotten.
    mutating func noteCall(_ name: String, in room: String) -> [JournalRecord] {
        guard !calls.contains(name) else { return [] }
        calls.append(name)
        var records = [JournalRecord(key: CallName.key(name, of: room), value: [])]
        if calls.count > Self.callLimit {
            let key = CallName.key(calls.removeFirst(), of: room)
            records.append(JournalRecord(key: key, value: nil))
        }
        return records
    }

    /// Whether another node can read it with certainty (`RegistryJournal`: 64 MiB).
    var isShort: Bool { recordBytes + bytes < 32 << 20 }

    /// Whether changes are still to be written.
    var isBehind: Bool { stored < change }

    /// `seq` of the first event that is held.
    var firstHeld: UInt64? {
        for item in held { if case .event(_, let seq, _) = item.output { return seq } }
        return nil
    }

    /// Notes changes of the room.
    mutating func note(_ changes: [JournalRecord]) {
        change += 1
        for record in changes {
            recordBytes -= records[record.key]?.count ?? 0
            recordBytes += record.value?.count ?? 0
            records[record.key] = record.value
            changed.insert(record.key)
            if record.value?.count ?? 0 > JournalEntry.recordLimit { isTooLong = true }
        }
    }

    /// Begins to write what has changed; returns whether there is something.
    ///
    /// `entry` is one without records, of the kind `changes`.
    mutating func beginWriting(_ entry: JournalEntry) -> Bool {
        guard isBehind || needsSnapshot, writing == nil, !isTooLong else { return false }
        let limit = max(Self.byteLimit, recordBytes)
        let isSnapshot = needsSnapshot || messages >= Self.messageLimit || bytes >= limit
        let keys = isSnapshot ? records.keys.sorted() : changed.sorted()
        let group = keys.map { JournalRecord(key: $0, value: records[$0]) }
        var entry = entry
        if isSnapshot { entry.kind = .snapshot }
        let parts = Self.parts(of: group).map { records, isLast in
            entry.records = records
            entry.isLast = isLast
            return entry.encoded
        }
        changed = []
        writing = Writing(change: change, isSnapshot: isSnapshot, messages: parts)
        return true
    }

    /// Splits records into parts that fit a message; the last one is marked.
    private static func parts(
        of records: [JournalRecord]
    ) -> [(records: [JournalRecord], isLast: Bool)] {
        var parts: [(records: [JournalRecord], isLast: Bool)] = []
        var part: [JournalRecord] = []
        var bytes = 0
        for record in records {
            let size = record.key.utf8.count + (record.value?.count ?? 0)
            if bytes + size > JournalEntry.byteLimit, !part.isEmpty {
                parts.append((part, false))
                (part, bytes) = ([], 0)
            }
            part.append(record)
            bytes += size
        }
        parts.append((part, true))
        return parts
    }

    /// Notes that a message is stored; returns the group if that was its last.
    mutating func noteStored(at sequence: UInt64) -> Writing? {
        guard var group = writing else { return nil }
        last = sequence
        group.first = group.first ?? sequence
        let size = group.stored < group.messages.count ? group.messages[group.stored].count : 0
        group.stored += 1
        if group.isSnapshot, group.stored == 1 { (messages, bytes) = (0, 0) }
        messages += 1
        if !group.isSnapshot { bytes += size }
        guard group.stored >= group.messages.count else {
            writing = group
            return nil
        }
        writing = nil
        stored = group.change
        if group.isSnapshot { needsSnapshot = false }
        return group
    }

    /// Gives a group up; all records are written again later.
    ///
    /// With `mayBeStored`, the broker has not said that it did not take it.
    mutating func giveUpWriting(mayBeStored: Bool = false) {
        if mayBeStored { doubtful = max(doubtful, writing?.change ?? 0) }
        writing = nil
        needsSnapshot = true
    }

    /// Number of the last change that may be in the journal.
    var written: UInt64 { max(stored, doubtful, writing?.change ?? 0) }

    /// Lets an output wait for the last change.
    mutating func hold(_ output: Held.Output, until deadline: Instant) {
        held.append(Held(output: output, change: change, deadline: deadline))
    }

    /// Removes and returns the outputs that need not wait any longer, in order.
    ///
    /// Without a time, none has waited for too long. With `isForced`, the broker is away and
    /// nothing waits.
    mutating func takeReleased(
        at now: Instant?,
        isForced: Bool
    ) -> [(output: Held.Output, isStored: Bool)] {
        var released: [(output: Held.Output, isStored: Bool)] = []
        for item in held {
            let isStored = item.change <= stored
            guard isStored || isForced || now.map({ item.deadline <= $0 }) == true
            else { break }
            released.append((item.output, isStored))
        }
        held.removeFirst(released.count)
        return released
    }

    /// Calls that are remembered of a room.
    static let callLimit = 256
    /// Messages between two snapshots.
    static let messageLimit = 500
    /// Bytes between two snapshots, if the room has fewer.
    static let byteLimit = 256 << 10
}
