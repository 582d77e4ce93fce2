import CKernel
import RTP
import Sockets

/// One IPC connection: what came of a line, what waits to go, and what it hears of.
struct Connection {
    /// Which rooms' events it gets.
    enum Subscription: Equatable {
        case none
        case all
        case rooms(Set<String>)

        func includes(_ room: String) -> Bool {
            switch self {
            case .none: false
            case .all: true
            case .rooms(let rooms): rooms.contains(room)
            }
        }
    }

    /// Whether it has taken nothing of late while more waits than the limit.
    private enum Stall: Equatable {
        case none
        /// Nothing of it has been counted yet.
        case begun
        case counted(milliseconds: Int64)
    }

    /// How far its end has come.
    enum Phase: Equatable {
        case open
        /// The other side has ended its input; replies still to come go out until then.
        case lingering(until: Instant)
        /// We end it: once what waits has gone out, and no later than then.
        case closing(until: Instant)
    }

    let descriptor: Int32
    var reader = LineReader(limit: IPCLimits.lineBytes)
    var output = OutputQueue()
    var subscription = Subscription.none
    var phase = Phase.open
    /// When the line that is under way began.
    var lineStart: Instant?
    private var stall = Stall.none
    private var taken: UInt64 = 0
    var budget: CallBudget
    /// It has made more calls than it may, and is not read before.
    var pausedUntil: Instant?
    /// What the poller waits for.
    var interest: Poller.Interest = .readable

    init(descriptor: Int32, budget: CallBudget) {
        self.descriptor = descriptor
        self.budget = budget
    }

    /// Whether its time after the end of reading is up.
    func isOver(at now: Instant) -> Bool {
        switch phase {
        case .open: false
        case .lingering(let end), .closing(let end): end <= now
        }
    }

    /// Whether there is something that time alone can end.
    var needsSweep: Bool { lineStart != nil || phase != .open || stall != .none }

    /// Looks whether the other side takes what waits for it; returns whether it does not.
    mutating func notesStall(_ limit: Int) -> Bool {
        let isMoving = output.taken != taken
        taken = output.taken
        if output.count <= limit {
            stall = .none
        } else if isMoving || stall == .none {
            stall = .begun
        }
        return stall != .none
    }

    /// Counts time in which it could have taken something; returns how much that is in all.
    ///
    /// Counted from the first look on: what sfud itself did before, an answer of megabytes or
    /// nothing at all, says nothing about who reads it.
    mutating func addStall(milliseconds: Int64) -> Int64 {
        var counted: Int64 = 0
        switch stall {
        case .none: return 0
        case .begun: break
        case .counted(milliseconds: let before): counted = before + milliseconds
        }
        stall = .counted(milliseconds: counted)
        return counted
    }

    /// What it should be waited for: who does not read is not read from either, nor is who asks
    /// for too much.
    func wantedInterest(outputLimit: Int) -> Poller.Interest {
        var wanted: Poller.Interest = []
        if phase == .open, output.count <= outputLimit / 2, pausedUntil == nil {
            wanted.insert(.readable)
        }
        if output.count > 0 { wanted.insert(.writable) }
        return wanted
    }
}
