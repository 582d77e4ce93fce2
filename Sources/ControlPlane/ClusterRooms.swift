import Contract
package import RTP
import Rooms

// Facts about this node's rooms for the other nodes of a cluster.
extension ControlPlane {
    /// Identifier of this life; the one before if its rooms went on.
    package var bootID: String { setup.bootID }

    /// Names of all rooms, in order.
    package var roomNames: [String] { rooms.names }

    package func hasRoom(_ name: String) -> Bool { rooms[name] != nil }

    /// `seq` of the last event that was sent of each room that is open.
    package var positions: [String: UInt64] { journals.positions }

    /// Ends a room for a reason that `room.closed` tells; does nothing if there is none.
    package mutating func end(_ name: String, reason: String, at now: Instant) {
        guard rooms[name] != nil else { return }
        setTime(now)
        let close = Room.Call.close(by: nil, reason: reason)
        guard let outcome = try? apply(close, in: RoomID(name)) else { return }
        conclude(outcome, in: name, at: now)
    }
}
