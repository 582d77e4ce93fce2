import Contract
import RTP
import SFUClient
import Synchronization

/// Viewers who go to other nodes when sfud asks them to, on second connections.
final class MovingViewers: Sendable {
    private let session: Session
    private let room: String
    private let viewer: RoomPlan.Participant
    private let moved = Mutex<[(old: LocalTransport, new: LocalTransport)]>([])

    /// `viewer` is one of the room's viewers, who are all alike.
    init(_ session: Session, room: String, like viewer: RoomPlan.Participant) {
        self.session = session
        self.room = room
        self.viewer = viewer
    }

    /// Follows what sfud asks, until the task is cancelled.
    func follow(_ adapter: SfudAdapter) async throws {
        var events = try adapter.events(of: room, "participant.moveWanted").makeAsyncIterator()
        try await events.subscribe()
        try await withThrowingDiscardingTaskGroup { group in
            while let event = try await events.next() {
                guard let asked = try? event.data.decode(ParticipantMoveWanted.self) else {
                    continue
                }
                group.addTask { await self.move(asked.participant.rawValue) }
            }
        }
    }

    private func move(_ name: String) async {
        var participant = viewer
        participant.name = name
        do {
            let pair = try await session.move(room, participant)
            moved.withLock { $0.append(pair) }
        } catch {
            SFUBench.complain("\(name) cannot move: \(error)")
        }
    }

    /// Times without sound of those who have moved, in milliseconds, the shortest first; 0 where
    /// the first packet of the new connection came before the last one of the old.
    func gaps() async -> [Double] {
        let pairs = moved.withLock { $0 }
        return await session.engine.perform { loop in
            pairs.compactMap { old, new in
                guard let last = loop.client(old)?.times(of: .audio).last,
                    let first = loop.client(new)?.times(of: .audio).first
                else { return nil }
                return max(0, Double(first.nanoseconds(since: last)) / 1e6)
            }
        }
        .sorted()
    }
}
