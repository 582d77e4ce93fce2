import Contract
import RTP
import Rooms

/// Whether new rooms are taken.
struct Draining {
    var isOn = false
    /// Rooms that are left then end.
    var deadline: Instant?
    /// Whether it was told that none is left.
    var isTold = false
}

/// `server.drain`: how a daemon is taken out of service without anybody losing a call.
extension ControlPlane {
    /// Takes no new rooms; a later call sets another deadline, and is told of the end again.
    mutating func drain(
        _ params: ServerDrain.Params,
        for caller: Caller,
        at now: Instant
    ) throws(IPCError) {
        if let seconds = params.deadline, !(0...Self.longestDrain).contains(seconds) {
            throw .invalidParameter(
                "deadline",
                "parameter \"deadline\" must be 0 to 604800 seconds"
            )
        }
        let deadline = params.deadline.map { now.advanced(milliseconds: Int64($0 * 1_000)) }
        draining = Draining(isOn: true, deadline: deadline)
        output.append(.log(.info, "draining", [("rooms", "\(rooms.count)")]))
        answer(Empty(), to: caller)
        tellIfDrained()
    }

    /// Ends the rooms that are left.
    mutating func endDraining(at now: Instant) {
        draining.deadline = nil
        setTime(now)
        for name in rooms.keys.sorted() { closeAtShutdown(name, at: now) }
        tellIfDrained()
    }

    /// Tells once that the last room has ended, when all was told of it.
    mutating func tellIfDrained() {
        guard draining.isOn, !draining.isTold, rooms.isEmpty, operations.isEmpty else { return }
        draining.isTold = true
        draining.deadline = nil
        output.append(.log(.info, "drained", []))
        output.append(.serverEvent(IPCEvent.encoded(ServerDrained(), time: shared.unixTime)))
    }

    private static let longestDrain = 604_800.0
}
