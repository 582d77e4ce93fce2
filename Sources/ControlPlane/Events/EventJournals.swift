/// Event journals: sequence numbers, recent events and pending operations of each room.
///
/// A closed room's name is remembered for a while. If a room of that name is made again, its `seq`
/// continues, so that nobody takes its events for those of the old room.
struct EventJournals {
    private struct Journal {
        /// `seq` of the last numbered event, whether sent or waiting for its fence.
        var numbered: UInt64 = 0
        /// `seq` of the last event that was sent.
        var told: UInt64 = 0
        /// The last events sent, oldest first, after `forgotten` empty entries.
        private var lines: [EventLine?] = []
        private var forgotten = 0
        private var bytes = 0
        /// Epochs of pending operations, in order.
        var queue: [UInt64] = []
        var isOpen = true

        var kept: ArraySlice<EventLine?> { lines[forgotten...] }

        /// `seq` of the first event that is kept, or of the next one.
        var firstKept: UInt64 { told + 1 - UInt64(kept.count) }

        /// Takes the events of an earlier process; all that were numbered have been told.
        mutating func restore(_ saved: [EventLine], numbered: UInt64) {
            self.numbered = numbered
            told = numbered
            lines = saved
            bytes = saved.reduce(0) { $0 + $1.line.count }
        }

        mutating func append(_ event: Operation.Event) {
            precondition(event.seq == told + 1, "events are told in the order of seq")
            told = event.seq
            lines.append(event.line)
            bytes += event.line.line.count
        }

        /// Drops the oldest events that exceed a limit.
        mutating func trim(to limit: Int, bytes byteLimit: Int) {
            while kept.count > limit || (bytes > byteLimit && kept.count > 1) {
                bytes -= lines[forgotten]?.line.count ?? 0
                lines[forgotten] = nil
                forgotten += 1
            }
            // Compact rarely, because all remaining entries move. An array keeps its capacity, so a
            // closed room is compacted at once: its name is remembered for long.
            guard forgotten > lines.count / 2 || !isOpen else { return }
            lines = Array(kept)
            forgotten = 0
        }
    }

    /// Events that a client missed after some `seq`, or the reason that they cannot be replayed.
    enum Missed: Equatable {
        case lines([EventLine])
        /// The events are no longer kept; with the `seq` of the last event sent.
        case expired(UInt64)
        /// The client's `seq` is higher than that of the last event sent.
        case ahead(UInt64)
        case noSuchRoom
    }

    /// Closed rooms that are remembered.
    static let closedLimit = 1_000

    private let eventLimit: Int
    /// Bytes of events kept per room.
    private let byteLimit = 1 << 20
    private var journals: [String: Journal] = [:]
    private var closed: [String] = []
    private var rooms: [UInt64: String] = [:]
    /// Changes since the journals were saved.
    private(set) var unsaved = UnsavedEvents()

    /// Events to be saved or removed.
    struct UnsavedEvents {
        /// Events by room and `seq`; `nil` for those that are no longer kept.
        var events: [String: [UInt64: EventLine?]] = [:]
        /// Rooms whose journals have changed otherwise.
        var journals: Set<String> = []
    }

    mutating func takeUnsaved() -> UnsavedEvents {
        defer { unsaved = UnsavedEvents() }
        return unsaved
    }

    /// Notes an event that has been numbered, before it is sent.
    mutating func save(_ event: Operation.Event, _ room: String) {
        unsaved.events[room, default: [:]][event.seq] = .some(event.line)
        unsaved.journals.insert(room)
    }

    /// State of a journal as it is saved; `nil` if the room is forgotten.
    func saved(_ room: String) -> SavedJournal? {
        journals[room].map { SavedJournal(numbered: $0.numbered, isOpen: $0.isOpen) }
    }

    /// Takes a saved journal with the events that are left of it.
    mutating func restore(_ room: String, _ saved: SavedJournal, _ events: [UInt64: EventLine]) {
        var lines: [EventLine] = []
        var seq = saved.numbered
        while seq > 0, let line = events[seq] {
            lines.append(line)
            seq -= 1
        }
        var journal = Journal()
        journal.restore(lines.reversed(), numbered: saved.numbered)
        journal.isOpen = saved.isOpen
        journals[room] = journal
        if !saved.isOpen { closed.append(room) }
        unsaved.journals.insert(room)
        let first = saved.numbered - UInt64(lines.count) + 1
        for (index, line) in lines.reversed().enumerated() {
            unsaved.events[room, default: [:]][first + UInt64(index)] = .some(line)
        }
    }

    /// Forgets a room that goes on at another node, all but the operations that are under way.
    mutating func abandon(_ room: String) {
        guard let journal = journals[room] else { return }
        noteRemoval(of: room)
        var rest = Journal()
        rest.queue = journal.queue
        rest.isOpen = false
        journals[room] = rest
    }

    /// Takes the journal of a room that comes from another node.
    mutating func adopt(_ room: String, _ saved: SavedJournal, _ events: [UInt64: EventLine]) {
        let queue = journals[room]?.queue ?? []
        closed.removeAll { $0 == room }
        if journals[room] != nil { noteRemoval(of: room) }
        restore(room, saved, events)
        journals[room]?.queue = queue
        trim(room)
    }

    /// Returns the events that are kept of a room, with their numbers.
    func kept(_ room: String) -> [(seq: UInt64, event: EventLine)] {
        guard let journal = journals[room] else { return [] }
        return zip(journal.firstKept..., journal.kept).compactMap { seq, line in
            line.map { (seq: seq, event: $0) }
        }
    }

    /// Journal without its events, as it is saved.
    struct SavedJournal: Codable {
        var numbered: UInt64
        var isOpen: Bool
    }

    init(eventLimit: Int) { self.eventLimit = eventLimit }

    mutating func open(_ room: String) {
        journals[room, default: Journal()].isOpen = true
        unsaved.journals.insert(room)
        closed.removeAll { $0 == room }
    }

    /// Keeps only the last event of a closed room.
    ///
    /// Beyond `closedLimit`, the room closed longest ago is forgotten.
    mutating func close(_ room: String) {
        journals[room]?.isOpen = false
        unsaved.journals.insert(room)
        trim(room)
        closed.append(room)
        guard closed.count > Self.closedLimit,
            let index = closed.firstIndex(where: { journals[$0]?.queue.isEmpty != false })
        else { return }
        let name = closed.remove(at: index)
        noteRemoval(of: name)
        journals[name] = nil
    }

    /// Returns the `seq` of a room's newest event, sent or not.
    func numbered(_ room: String) -> UInt64 { journals[room]?.numbered ?? 0 }

    /// `seq` of the last event that was sent of each open room.
    var positions: [String: UInt64] { journals.filter(\.value.isOpen).mapValues(\.told) }

    /// Rooms that are open, sorted by name.
    var open: [String] { journals.filter(\.value.isOpen).keys.sorted() }

    mutating func number(_ room: String) -> UInt64 {
        journals[room, default: Journal()].numbered += 1
        return numbered(room)
    }

    mutating func enqueue(_ epoch: UInt64, _ room: String) {
        rooms[epoch] = room
        journals[room, default: Journal()].queue.append(epoch)
    }

    /// Enqueues an operation before all others of its room.
    mutating func enqueueFirst(_ epoch: UInt64, _ room: String) {
        rooms[epoch] = room
        journals[room, default: Journal()].queue.insert(epoch, at: 0)
    }

    func room(of epoch: UInt64) -> String? { rooms[epoch] }
    func first(_ room: String) -> UInt64? { journals[room]?.queue.first }

    /// Returns the epochs of a room's pending operations.
    func underWay(_ room: String) -> [UInt64] { journals[room]?.queue ?? [] }

    mutating func dequeue(_ room: String) {
        guard let epoch = journals[room]?.queue.removeFirst() else { return }
        rooms[epoch] = nil
    }

    mutating func append(_ event: Operation.Event, _ room: String) {
        journals[room]?.append(event)
        trim(room)
    }

    private mutating func trim(_ room: String) {
        let limit = journals[room]?.isOpen == true ? eventLimit : 1
        let first = journals[room]?.firstKept ?? 0
        journals[room]?.trim(to: limit, bytes: byteLimit)
        for seq in first..<max(first, journals[room]?.firstKept ?? 0) {
            unsaved.events[room, default: [:]][seq] = .some(nil)
        }
    }

    private mutating func noteRemoval(of room: String) {
        guard let journal = journals[room] else { return }
        unsaved.journals.insert(room)
        for seq in journal.firstKept..<(journal.numbered + 1) {
            unsaved.events[room, default: [:]][seq] = .some(nil)
        }
    }

    func missed(_ room: String, since seen: UInt64) -> Missed {
        guard let journal = journals[room] else { return .noSuchRoom }
        guard seen <= journal.told else { return .ahead(journal.told) }
        let missing = journal.told - seen
        guard missing <= UInt64(journal.kept.count) else { return .expired(journal.told) }
        return .lines(journal.kept.suffix(Int(missing)).compactMap(\.self))
    }
}
