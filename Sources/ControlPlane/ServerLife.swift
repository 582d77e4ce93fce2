import Contract
package import RTP
import Rooms

/// Shutdown and draining: while either is on, no new rooms are accepted.
struct ServerLife {
    private enum Ending {
        case no
        /// Rooms are closing; the process exits at this time at the latest.
        case by(Instant)
        case done
    }

    private enum Draining {
        case no
        /// Rooms end by themselves, or are closed at the deadline if there is one.
        case until(Instant?)
        /// The remaining rooms have been told to close.
        case closing
        /// The end of the last room has been announced.
        case told
    }

    /// Upgrade that has been asked for.
    enum Upgrade {
        case no
        /// Without a caller, a signal has asked for it.
        case asked(by: Caller?)
    }

    var upgrade = Upgrade.no
    /// Participants that connect elsewhere than at their room's home; `nil` without a cluster.
    var places: Places?
    /// Rooms of lost nodes whose taking over has ended, with their last events' numbers.
    var adopted: [(room: String, last: UInt64?)] = []
    /// Result of `node.list`; empty without a cluster.
    var nodes = NodeList.Result()
    private var ending = Ending.no
    private var draining = Draining.no
    /// Rooms that have been told to close and are still to do so, the first one last.
    private var closing: [String] = []
    /// Since when rooms have been closing.
    private var closingSince: Instant?

    /// Time that rooms have to end at shutdown.
    private static let graceMilliseconds: Int64 = 1_500

    var acceptsRooms: Bool {
        if case .no = ending, case .no = draining { true } else { false }
    }

    /// Whether shutdown has begun.
    var isEnding: Bool {
        if case .no = ending { false } else { true }
    }

    /// Whether `server.drain` is in force.
    var isDraining: Bool {
        switch draining {
        case .no: false
        case .until, .closing, .told: true
        }
    }

    /// Earliest time at which shutdown or draining has something to do.
    var deadline: Instant? {
        [endingDeadline, drainingDeadline, closing.isEmpty ? nil : closingSince]
            .compactMap(\.self).min()
    }

    var endingDeadline: Instant? {
        if case .by(let end) = ending { end } else { nil }
    }

    var drainingDeadline: Instant? {
        if case .until(let end) = draining { end } else { nil }
    }

    /// Whether the end of the last room is still to be announced.
    var awaitsLastRoom: Bool {
        switch draining {
        case .until, .closing: true
        case .no, .told: false
        }
    }

    /// Whether rooms have no time left to go to other homes.
    var closesRooms: Bool {
        if case .closing = draining { true } else { false }
    }

    /// Begins shutdown.
    ///
    /// - Returns: `false` if it has begun already.
    mutating func end(at now: Instant) -> Bool {
        guard case .no = ending else { return false }
        ending = .by(now.advanced(milliseconds: Self.graceMilliseconds))
        return true
    }

    mutating func finish() {
        ending = .done
        closing = []
    }

    /// Whether rooms are still to close.
    var isClosing: Bool { !closing.isEmpty }

    mutating func close(_ rooms: [String], at now: Instant) {
        closing = rooms.reversed()
        closingSince = now
    }

    mutating func nextToClose() -> String? { closing.popLast() }

    mutating func drain(until deadline: Instant?) {
        draining = .until(deadline)
        keepRooms()
    }

    mutating func undrain() {
        draining = .no
        keepRooms()
    }

    /// Forgets which rooms an earlier deadline was to close, unless the process is to exit.
    private mutating func keepRooms() {
        if case .no = ending { closing = [] }
    }

    mutating func closeRemaining() { draining = .closing }
    mutating func announceDrained() { draining = .told }
}

/// Shutdown of the process.
extension ControlPlane {
    /// Closes all rooms; `ControlOutput.exit` follows when the workers have passed the fences.
    package mutating func shutdown(at now: Instant) {
        guard life.end(at: now) else { return }
        setTime(now)
        life.close(rooms.names, at: now)
        closeSome(at: now)
    }

    /// Performs what is due of shutdown and draining.
    mutating func expireLife(at now: Instant) {
        if let end = life.endingDeadline, end <= now { finish() }
        if life.isClosing { closeSome(at: now) }
        if let end = life.drainingDeadline, end <= now { endDraining(at: now) }
    }

    mutating func finishIfDone() {
        if life.endingDeadline != nil, operations.isEmpty, !life.isClosing { finish() }
    }

    private mutating func finish() {
        life.finish()
        output.append(.exit)
    }

    /// Closes rooms, as many as do not hold up the other rooms' calls and the deadline; the others
    /// follow in later turns.
    private mutating func closeSome(at now: Instant) {
        let close = Room.Call.close(by: nil, reason: Room.EndReason.shutdown)
        var members = 0
        while members < Self.membersATurn, let name = life.nextToClose() {
            members += 1 + (rooms[name]?.room.participants.count ?? 0)
            guard let outcome = try? apply(close, in: RoomID(name)) else { continue }
            conclude(outcome, in: name, at: now)
        }
        tellIfDrained()
        finishIfDone()
    }

    /// Members whose rooms close in one turn, some milliseconds.
    private static let membersATurn = 500
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
        life.drain(
            until: params.deadline.map { now.advanced(milliseconds: Int64($0 * 1_000)) }
        )
        output.append(.log(.info, "draining", [("rooms", "\(rooms.count)")]))
        places?.moves.isForced = false
        show(life.nodes, at: now)
        answer(Empty(), to: caller)
        tellIfDrained()
    }

    /// Accepts rooms again.
    mutating func undrain(for caller: Caller, at now: Instant) {
        if life.isDraining { output.append(.log(.info, "no longer draining", [])) }
        life.undrain()
        show(life.nodes, at: now)
        answer(Empty(), to: caller)
    }

    /// Closes the remaining rooms; in a cluster they go to other homes first, if they can.
    private mutating func endDraining(at now: Instant) {
        if forceHandover(at: now) {
            return life.drain(until: now.advanced(milliseconds: Moves.graceMilliseconds))
        }
        life.closeRemaining()
        setTime(now)
        life.close(rooms.names, at: now)
        closeSome(at: now)
    }

    /// Closes rooms that no other home has taken, and that came back after the others had closed.
    mutating func closeReturned(at now: Instant) {
        guard life.closesRooms, !life.isClosing, !rooms.isEmpty else { return }
        life.close(rooms.names, at: now)
        closeSome(at: now)
    }

    /// Announces once that the last room has ended, after all its events are out.
    mutating func tellIfDrained() {
        guard life.awaitsLastRoom, rooms.isEmpty, operations.isEmpty, hasNoGuests else { return }
        life.announceDrained()
        output.append(.log(.info, "drained", []))
        announce(ServerDrained())
    }

    private static let longestDrain = 604_800.0
}

/// Replacement of the program (`server.upgrade`).
extension ControlPlane {
    /// Reason for which the program cannot be replaced now; `nil` if it can.
    package var upgradeObstacle: String? {
        life.isEnding ? "sfud is shutting down" : nil
    }

    /// Asks for an upgrade to the program that was started, because of a signal.
    package mutating func requestUpgrade() {
        do throws(IPCError) {
            try upgrade(ServerUpgrade.Params(), for: nil)
        } catch {
            output.append(.log(.warning, error.message, []))
        }
    }

    /// Asks for an upgrade; the reply follows when the program has been checked.
    mutating func upgrade(
        _ params: ServerUpgrade.Params,
        for caller: Caller?
    ) throws(IPCError) {
        if let binary = params.binary {
            guard binary.hasPrefix("/"), binary.utf8.count <= Self.longestPath,
                !binary.utf8.contains(0)
            else {
                throw .invalidParameter(
                    "binary",
                    "parameter \"binary\" must be an absolute path of at most 1024 bytes"
                )
            }
        }
        guard case .no = life.upgrade else { throw .upgradeRefused("another one is in progress") }
        if let obstacle = upgradeObstacle { throw .upgradeRefused(obstacle) }
        life.upgrade = .asked(by: caller)
        output.append(.upgrade(binary: params.binary))
    }

    /// Replies to the caller of an upgrade; without a refusal, the program is replaced next.
    package mutating func concludeUpgrade(refusal: String?) {
        guard case .asked(let caller) = life.upgrade else { return }
        life.upgrade = .no
        if let refusal {
            output.append(.log(.warning, "no upgrade", [("reason", refusal)]))
            if let caller { refuse(.upgradeRefused(refusal), to: caller) }
        } else if let caller {
            answer(Empty(), to: caller)
        }
    }

    private static let longestPath = 1_024
}
