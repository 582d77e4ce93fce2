import CKernel
import ControlPlane
import RTP
import Sockets

/// State of one IPC connection: partial input, queued output, and subscribed events.
struct Connection {
    /// Progress of a peer whose queued output exceeds the limit.
    private enum Stall: Equatable {
        case none
        /// The output is over the limit, and no stalled time has been counted yet.
        case begun
        case counted(milliseconds: Int64)
    }

    /// Stage of the connection's shutdown.
    enum Phase: Equatable {
        case open
        /// The peer has ended its input; outstanding replies are still sent until the given time.
        case lingering(until: Instant)
        /// sfud closes the connection once its queue is empty, and no later than the given time.
        case closing(until: Instant)
    }

    let descriptor: Int32
    var reader = LineReader(limit: IPCLimits.lineBytes)
    var output = OutputQueue()
    /// Events that the connection receives; `nil` before it has subscribed.
    var events: EventInterest?
    var phase = Phase.open
    /// Arrival time of the first byte of a partial line.
    var lineStart: Instant?
    private var stall = Stall.none
    private var taken: UInt64 = 0
    var budget: CallBudget
    /// End of a pause in reading, because the connection exceeded its call budget.
    var pausedUntil: Instant?
    /// Readiness registered with the poller.
    var interest: Poller.Interest = .readable

    init(descriptor: Int32, budget: CallBudget) {
        self.descriptor = descriptor
        self.budget = budget
    }

    /// Whether the time for ending the connection has passed.
    func isOver(at now: Instant) -> Bool {
        switch phase {
        case .open: false
        case .lingering(let end), .closing(let end): end <= now
        }
    }

    /// Whether the connection has a timeout running, so that it must be swept.
    var needsSweep: Bool { lineStart != nil || phase != .open || stall != .none }

    /// Updates the stall state from what the peer has read; returns whether it may be stalled.
    mutating func updateStall(_ limit: Int) -> Bool {
        let isMoving = output.taken != taken
        taken = output.taken
        if output.count <= limit {
            stall = .none
        } else if isMoving || stall == .none {
            stall = .begun
        }
        return stall != .none
    }

    /// Adds time in which the peer read nothing; returns the total in milliseconds.
    ///
    /// The first call after a stall began counts 0: a delay caused by sfud itself, such as an
    /// answer of megabytes or a blocked loop, is not the peer's fault.
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

    /// Returns the readiness to wait for.
    ///
    /// A connection that does not read its output, or has exceeded its call budget, is not read
    /// from.
    func wantedInterest(outputLimit: Int) -> Poller.Interest {
        var wanted: Poller.Interest = []
        if phase == .open, output.count <= outputLimit / 2, pausedUntil == nil {
            wanted.insert(.readable)
        }
        if output.count > 0 { wanted.insert(.writable) }
        return wanted
    }
}

/// Token bucket that limits the calls of one IPC connection.
///
/// It allows a number of calls a second, and a burst of one second's worth. Its state is the time
/// at which all calls taken so far will be paid for.
struct CallBudget {
    /// Cost of a call, in nanoseconds.
    private let cost: Int64
    private var paid = Instant(nanoseconds: 0)

    /// Largest lead of `paid` over the clock, in nanoseconds.
    private static let burst: Int64 = 1_000_000_000
    /// Budget that must be regained before reading resumes, in nanoseconds, to avoid tiny reads.
    private static let rest: Int64 = 20_000_000

    /// `callsPerSecond` is at least 1.
    init(callsPerSecond: Int) {
        precondition(callsPerSecond > 0, "a connection may make calls")
        cost = max(1, 1_000_000_000 / Int64(callsPerSecond))
    }

    /// Charges calls that have been read.
    ///
    /// - Returns: the time at which reading may resume; `nil` if calls are left.
    mutating func take(_ calls: Int, at now: Instant) -> Instant? {
        let start = max(paid.nanoseconds, now.nanoseconds)
        paid = Instant(nanoseconds: start &+ Int64(calls) &* cost)
        let ahead = paid.nanoseconds - now.nanoseconds
        guard ahead > Self.burst else { return nil }
        return Instant(nanoseconds: now.nanoseconds + ahead - Self.burst + Self.rest)
    }
}
