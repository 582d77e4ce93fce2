import Contract
import RTP
import Rooms

/// State of draining: while it is on, no new rooms are accepted.
struct Draining {
    var isOn = false
    /// Time at which the remaining rooms are closed; `nil`: never.
    var deadline: Instant?
    /// Whether the end of the last room has been announced.
    var isTold = false
}

/// Draining (`server.drain`): stops accepting rooms, so that the daemon can be replaced.
extension ControlPlane {
    /// Stops accepting rooms.
    ///
    /// A later call sets another deadline and lets the end be announced again.
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

    /// Closes the remaining rooms.
    mutating func endDraining(at now: Instant) {
        draining.deadline = nil
        setTime(now)
        for name in rooms.keys.sorted() { closeAtShutdown(name, at: now) }
        tellIfDrained()
    }

    /// Announces once that the last room has ended, after all its events are out.
    mutating func tellIfDrained() {
        guard draining.isOn, !draining.isTold, rooms.isEmpty, operations.isEmpty else { return }
        draining.isTold = true
        draining.deadline = nil
        output.append(.log(.info, "drained", []))
        output.append(.serverEvent(IPCEvent.encoded(ServerDrained(), time: shared.unixTime)))
    }

    private static let longestDrain = 604_800.0
}
