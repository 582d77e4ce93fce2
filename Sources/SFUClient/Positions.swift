import Contract
import JSON

/// How far each room's events have been given.
struct Positions {
    /// Of rooms that have not closed.
    private(set) var seen: [RoomID: Int64]
    /// A room that is not known was made while nobody listened: its first event is 1.
    var expectsEverything = false
    /// Of rooms that have closed: one of the same name, made again, counts on.
    private var closed: [RoomID: Int64] = [:]
    private var closedOrder: [RoomID] = []

    /// Closed rooms that are remembered; sfud remembers no more itself.
    static let closedLimit = 1_000

    init(seen: [RoomID: Int64]) { self.seen = seen }

    /// Notes a room of which nothing was seen since it was made.
    mutating func meet(_ room: RoomID) {
        if seen[room] == nil { seen[room] = closed[room] ?? 0 }
    }

    /// The daemon is another one: it knows nothing of the rooms that were, and counts from 1.
    mutating func restart(at time: Double) -> [IPCEvent] {
        let gone = seen.keys.sorted().map { Self.resync($0, 0, time, "restarted") }
        self = Self(seen: [:])
        return gone
    }

    /// The event to give for this one: itself, nothing for a repeated one, `resync` for a gap.
    mutating func take(_ event: IPCEvent) -> IPCEvent? {
        guard let room = event.room else { return event }
        let unknown = expectsEverything ? 0 : event.seq - 1
        let last = seen[room] ?? closed[room] ?? unknown
        if event.event == Resync.event {
            if event.seq > 0 { seen[room] = event.seq } else { seen[room] = nil }
            return event
        }
        guard event.seq > last else { return nil }
        if event.event == RoomClosed.event {
            close(room, at: event.seq)
        } else {
            seen[room] = event.seq
        }
        guard event.seq > last + 1 else { return event }
        return Self.resync(room, event.seq, event.time, "gap")
    }

    private mutating func close(_ room: RoomID, at seq: Int64) {
        seen[room] = nil
        if closed.updateValue(seq, forKey: room) == nil { closedOrder.append(room) }
        if closedOrder.count > Self.closedLimit { closed[closedOrder.removeFirst()] = nil }
    }

    private static func resync(
        _ room: RoomID,
        _ seq: Int64,
        _ time: Double,
        _ reason: String
    ) -> IPCEvent {
        IPCEvent(
            event: Resync.event,
            room: room,
            seq: seq,
            time: time,
            to: .participants([]),
            data: JSON(encoding: Resync(reason: reason))
        )
    }
}
