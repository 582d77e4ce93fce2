/// What each room has told, and what it is about to tell.
///
/// A room that has closed is remembered for a while by its name, so that `seq` goes on where a
/// room of the same name is made again and nobody takes its events for the old room's.
struct ControlJournals {
    private struct Journal {
        /// Of the last event that was numbered, be it told or waiting for its fence.
        var numbered: UInt64 = 0
        var told: UInt64 = 0
        /// The last ones told, oldest first, behind places that are forgotten.
        private var lines: [[UInt8]] = []
        private var forgotten = 0
        private var bytes = 0
        /// Operations in order, by their epoch.
        var queue: [UInt64] = []
        var isOpen = true

        var kept: ArraySlice<[UInt8]> { lines[forgotten...] }

        mutating func append(_ event: Operation.Event) {
            precondition(event.seq == told + 1, "events are told in the order of seq")
            told = event.seq
            lines.append(event.line)
            bytes += event.line.count
        }

        /// Forgets the oldest of the events that are too many.
        mutating func trim(to limit: Int, bytes byteLimit: Int) {
            while kept.count > limit || (bytes > byteLimit && kept.count > 1) {
                bytes -= lines[forgotten].count
                lines[forgotten] = []
                forgotten += 1
            }
            // Not at each event: all that stay have to move. An array keeps its capacity, that of
            // a closed room for as long as its name is remembered.
            guard forgotten > lines.count / 2 || !isOpen else { return }
            lines = Array(kept)
            forgotten = 0
        }
    }

    /// What a client missed that has seen a room's events up to some `seq`.
    enum Missed: Equatable {
        case lines([[UInt8]])
        /// No longer held; with the `seq` of the last event told.
        case expired(UInt64)
        /// The client has seen more than there was.
        case ahead(UInt64)
        case noSuchRoom
    }

    /// Rooms that are remembered after they closed.
    static let closedLimit = 1_000

    private let eventLimit: Int
    /// Bytes kept of one room's events.
    private let byteLimit = 1 << 20
    private var journals: [String: Journal] = [:]
    private var closed: [String] = []
    private var rooms: [UInt64: String] = [:]

    init(eventLimit: Int) { self.eventLimit = eventLimit }

    mutating func open(_ room: String) {
        journals[room, default: Journal()].isOpen = true
        closed.removeAll { $0 == room }
    }

    /// Keeps of a closed room's events only the last; forgets the room closed longest ago.
    mutating func close(_ room: String) {
        journals[room]?.isOpen = false
        trim(room)
        closed.append(room)
        guard closed.count > Self.closedLimit,
            let index = closed.firstIndex(where: { journals[$0]?.queue.isEmpty != false })
        else { return }
        journals[closed.remove(at: index)] = nil
    }

    /// The `seq` of a room's newest event, told or not.
    func numbered(_ room: String) -> UInt64 { journals[room]?.numbered ?? 0 }

    /// The rooms that have not closed.
    var open: [String] { journals.filter(\.value.isOpen).keys.sorted() }

    mutating func number(_ room: String) -> UInt64 {
        journals[room, default: Journal()].numbered += 1
        return numbered(room)
    }

    mutating func enqueue(_ epoch: UInt64, _ room: String) {
        rooms[epoch] = room
        journals[room, default: Journal()].queue.append(epoch)
    }

    func room(of epoch: UInt64) -> String? { rooms[epoch] }
    func first(_ room: String) -> UInt64? { journals[room]?.queue.first }

    /// A room's operations that are under way, by their epochs.
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
        journals[room]?.trim(to: limit, bytes: byteLimit)
    }

    func missed(_ room: String, since seen: UInt64) -> Missed {
        guard let journal = journals[room] else { return .noSuchRoom }
        guard seen <= journal.told else { return .ahead(journal.told) }
        let missing = journal.told - seen
        guard missing <= UInt64(journal.kept.count) else { return .expired(journal.told) }
        return .lines(Array(journal.kept.suffix(Int(missing))))
    }
}
