import Contract
import JSON

/// Position in each room's event sequence.
struct EventPositions {
    /// Last `seq` of each open room.
    private(set) var seen: [RoomID: Int64]
    /// Whether an unknown room's first event must be 1, because it was created while disconnected.
    var expectsEverything = false
    /// Whether some events are left out, so that a gap means nothing.
    let isFiltered: Bool
    /// Last `seq` of closed rooms: a new room of the same name continues the count.
    private var closed: [RoomID: Int64] = [:]
    private var closedOrder: [RoomID] = []

    /// Most closed rooms that are remembered; the same number as in sfud.
    static let closedLimit = 1_000

    init(seen: [RoomID: Int64], isFiltered: Bool = false) {
        self.seen = seen
        self.isFiltered = isFiltered
    }

    /// Registers a room without any events seen since its creation.
    mutating func register(_ room: RoomID) {
        if seen[room] == nil { seen[room] = closed[room] ?? 0 }
    }

    /// Handles a restarted daemon, which has none of the old rooms and counts from 1.
    mutating func restart(at time: Double) -> [IPCEvent] {
        let gone = seen.keys.sorted().map { Self.resync($0, 0, time, "restarted") }
        self = Self(seen: [:], isFiltered: isFiltered)
        return gone
    }

    /// Returns the event to deliver: the event, `nil` for a repeated one, or `resync` for a gap.
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
        guard event.seq > last + 1, !isFiltered else { return event }
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
            audience: .participants([]),
            data: JSON(encoding: Resync(reason: reason))
        )
    }
}
