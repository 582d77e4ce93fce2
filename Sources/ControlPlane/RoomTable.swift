import Contract
import JSON
import RTP
import Rooms
import WorkerInterface

/// Rooms by name, with their load on the workers, their worker-side objects and their deadlines.
struct RoomTable {
    /// Entries by name.
    ///
    /// A room is changed in place, here: copying it would cost time in proportion to its size.
    var entries = TrackedDictionary<String, RoomEntry>()
    /// Records of the rooms, as far as they are saved.
    var records = RoomRecords()
    /// Number of rooms for which each worker is the first.
    private var counts: [Int]
    /// Room that owns a worker-side object, to route worker events.
    private(set) var owners: [Room.WorkerResource: String] = [:]
    /// Number of transports of each room in each worker that has any of it.
    private var users: [Int: [String: Int]] = [:]
    /// Number of transport state changes and releases since the start.
    private(set) var transportChanges = 0
    /// Counters of what has happened in all rooms.
    var counters = ControlCounters()
    /// Deadlines of rooms that have one.
    private var deadlines = DeadlineQueue()

    init(workers: Int) {
        counts = [Int](repeating: 0, count: workers)
    }

    subscript(name: String) -> RoomEntry? { entries[name] }
    subscript(room: RoomID) -> RoomEntry? { entries[room.rawValue] }

    var isEmpty: Bool { entries.isEmpty }
    var count: Int { entries.count }
    /// Names in order.
    private(set) var names: [String] = []
    var participantCount: Int { entries.values.reduce(0) { $0 + $1.room.participants.count } }

    mutating func open(_ entry: RoomEntry) {
        counts[entry.room.worker] += 1
        entries[entry.room.name] = entry
        names.insert(entry.room.name, at: place(of: entry.room.name))
    }

    mutating func close(_ name: String) {
        guard let entry = entries.removeValue(forKey: name) else { return }
        counts[entry.room.worker] -= 1
        deadlines.set(nil, of: name)
        names.remove(at: place(of: name))
    }

    /// Returns the index of a name in `names`, or its insertion index.
    private func place(of name: String) -> Int {
        var low = 0
        var high = names.count
        while low < high {
            let middle = (low + high) / 2
            if names[middle] < name { low = middle + 1 } else { high = middle }
        }
        return low
    }

    /// Returns the names behind one that a room has or had; all for `nil`.
    func names(after name: String?) -> ArraySlice<String> {
        guard let name else { return names[...] }
        let place = place(of: name)
        return names[(names.indices.contains(place) && names[place] == name ? place + 1 : place)...]
    }

    /// Returns a page of the rooms' summaries; a cursor is the name of the last room.
    ///
    /// It is a place in the order of names, so the room itself may have ended.
    ///
    /// - Throws: `-32602 invalid-params` for a cursor that no room can have.
    func page(_ params: RoomList.Params) throws(IPCError) -> Page {
        if let after = params.after, RoomID(rawValue: after.rawValue) == nil { throw .badCursor }
        var page = Page(limit: params.limit)
        for name in names(after: params.after?.rawValue) {
            guard let entry = entries[name],
                params.state == nil || params.state == RoomState(entry.room.state)
            else { continue }
            guard page.append(JSON.encoded(entry.summary), cursor: name) else { break }
        }
        return page
    }

    /// Worker for a new room, by the transports that each one has.
    ///
    /// Each room counts as one transport, because an empty room is likely to get some.
    func leastLoadedWorker(_ identifiers: [WorkerIdentifiers]) -> Int {
        let load = zip(identifiers, counts).map { $0.transports.used + $1 }
        return load.indices.min { (load[$0], $0) < (load[$1], $1) } ?? 0
    }

    /// Notes that a room owns worker-side objects.
    mutating func own(_ resources: [Room.WorkerResource], _ name: String) {
        for resource in resources {
            countUse(of: resource, by: -1)
            owners[resource] = name
            countUse(of: resource, by: 1)
        }
    }

    /// Forgets a worker-side object that no worker uses any longer.
    mutating func disown(_ resource: Room.WorkerResource) {
        countUse(of: resource, by: -1)
        owners[resource] = nil
        if case .transport = resource { noteTransportChange() }
    }

    private mutating func countUse(of resource: Room.WorkerResource, by change: Int) {
        guard case .transport(let worker, _) = resource, let name = owners[resource] else { return }
        let count = (users[worker]?[name] ?? 0) + change
        users[worker, default: [:]][name] = count > 0 ? count : nil
        if users[worker]?.isEmpty == true { users[worker] = nil }
    }

    /// Names of the rooms that have transports in one of these workers, in order; some may have
    /// ended just now.
    func names(withTransportsIn workers: some Sequence<Int>) -> [String] {
        var names: Set<String> = []
        for worker in workers { names.formUnion((users[worker] ?? [:]).keys) }
        return names.sorted()
    }

    mutating func noteTransportChange() { transportChanges &+= 1 }

    /// Updates the stored deadline of a room.
    mutating func noteDeadline(of name: String) {
        deadlines.set(entries[name]?.room.deadline, of: name)
    }

    /// Earliest deadline of a room; every empty room has one.
    var deadline: Instant? { deadlines.first }

    /// Rooms whose deadline has passed, in order, so that runs are reproducible.
    mutating func due(at now: Instant) -> [String] { deadlines.due(at: now) }
}
