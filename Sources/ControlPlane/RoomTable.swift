import Contract
import RTP
import Rooms
import WorkerInterface

/// Rooms by name, with their load on the workers, their worker-side objects and their deadlines.
struct RoomTable {
    /// Entries by name.
    ///
    /// A room is changed in place, here: copying it would cost time in proportion to its size.
    var entries: [String: RoomEntry] = [:]
    /// Number of rooms for which each worker is the first.
    private var counts: [Int]
    /// Room that owns a worker-side object, to route worker events.
    private(set) var owners: [Room.WorkerResource: String] = [:]
    /// Number of transport state changes and releases since the start.
    private(set) var transportChanges = 0
    /// Deadlines of rooms that have one.
    private var deadlines: [String: Instant] = [:]

    init(workers: Int) {
        counts = [Int](repeating: 0, count: workers)
    }

    subscript(name: String) -> RoomEntry? { entries[name] }
    subscript(room: RoomID) -> RoomEntry? { entries[room.rawValue] }

    var isEmpty: Bool { entries.isEmpty }
    var count: Int { entries.count }
    /// Names in order, so that runs are reproducible.
    var names: [String] { entries.keys.sorted() }
    var participantCount: Int { entries.values.reduce(0) { $0 + $1.room.participants.count } }

    mutating func open(_ entry: RoomEntry) {
        counts[entry.room.worker] += 1
        entries[entry.room.name] = entry
    }

    mutating func close(_ name: String) {
        guard let entry = entries.removeValue(forKey: name) else { return }
        counts[entry.room.worker] -= 1
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
        for resource in resources { owners[resource] = name }
    }

    /// Forgets a worker-side object that no worker uses any longer.
    mutating func disown(_ resource: Room.WorkerResource) {
        owners[resource] = nil
        if case .transport = resource { noteTransportChange() }
    }

    mutating func noteTransportChange() { transportChanges &+= 1 }

    /// Updates the stored deadline of a room.
    mutating func noteDeadline(of name: String) {
        deadlines[name] = entries[name]?.room.deadline
    }

    /// Earliest deadline of a room; few rooms have one at a time.
    var deadline: Instant? { deadlines.values.min() }

    /// Rooms whose deadline has passed, in order, so that runs are reproducible.
    func due(at now: Instant) -> [String] {
        deadlines.filter { $0.value <= now }.keys.sorted()
    }
}
