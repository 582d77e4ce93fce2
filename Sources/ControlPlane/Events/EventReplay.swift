import Contract
import RTP
import Rooms

/// Subscription of connections to events (`events.subscribe`), with replay of what they missed.
extension ControlPlane {
    /// Sets the rooms whose events a connection receives, and replays the events it missed.
    ///
    /// The rooms have their turns by name. One whose missed events are too many besides those of
    /// the rooms before gets `resync`.
    mutating func subscribe(
        _ params: EventsSubscribe.Params,
        for caller: Caller
    ) throws(IPCError) {
        let rooms = params.rooms.map { Set($0.map(\.rawValue)) }
        let interest = EventInterest(rooms: rooms, patterns: params.events)
        var replay: [MissedEvent] = []
        var bytes = 0
        for (room, seen) in (params.since ?? [:]).sorted(by: { $0.key < $1.key }) {
            let parameter = "since.\(room)"
            guard rooms?.contains(room.rawValue) != false else {
                throw .invalidParameter(
                    parameter,
                    "parameter \"\(parameter)\" is none of the rooms asked for"
                )
            }
            guard let seen = UInt64(exactly: seen) else {
                throw .invalidParameter(
                    parameter,
                    "parameter \"\(parameter)\" must be 0 or more"
                )
            }
            replay += self.replay(of: room, since: seen, interest, besides: &bytes)
        }
        answer(Done(), to: caller)
        output.append(.subscribe(caller.connection, interest, replay: replay))
    }

    /// Returns the events that a connection wants of those that it missed of a room, or `resync` if
    /// they are too many besides `bytes` of other rooms.
    private func replay(
        of room: RoomID,
        since seen: UInt64,
        _ interest: EventInterest,
        besides bytes: inout Int
    ) -> [MissedEvent] {
        let all = missed(room, since: seen)
        var wanted = all.filter {
            $0.event.name == Resync.event || interest.includes($0.event.name, in: nil)
        }
        let fits = wanted.isEmpty || bytes + wanted.bytes <= setup.replayBytes
        if !fits, let last = all.last, last.event.name != Resync.event {
            wanted = [resync(room, "expired", last.seq)]
        }
        bytes += wanted.bytes
        return wanted
    }

    private func missed(_ room: RoomID, since seen: UInt64) -> [MissedEvent] {
        switch journals.missed(room.rawValue, since: seen) {
        case .lines(let lines):
            zip((seen + 1)..., lines).map { seq, line in
                MissedEvent(line, room: room.rawValue, seq: seq)
            }
        case .expired(let last): [resync(room, "expired", last)]
        case .ahead(let last): [resync(room, "ahead", last)]
        case .noSuchRoom: [resync(room, "no-such-room", 0)]
        }
    }

    private func resync(_ room: RoomID, _ reason: String, _ last: UInt64) -> MissedEvent {
        let line = IPCEvent.encoded(
            Resync(reason: reason),
            room: room,
            seq: Int64(last),
            time: shared.unixTime,
            audience: .participants([])
        )
        let event = EventLine(name: Resync.event, line: line)
        return MissedEvent(event, room: room.rawValue, seq: last)
    }
}

extension [MissedEvent] {
    /// Bytes of the events' lines.
    fileprivate var bytes: Int { reduce(0) { $0 + $1.event.line.count } }
}
