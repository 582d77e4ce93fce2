import RTP

/// Coalescing of small batches: decides how long a busy worker leaves its sockets alone, so that
/// more datagrams form one batch.
///
/// A worker of many small rooms would otherwise wake up for each frame of each publisher, and
/// between the packets of a frame, which then leave in several calls instead of one. So it lets
/// some time pass from one wake-up to the next. That delays packets, so it must pay: the coalescer
/// measures how many datagrams a batch has without pauses and with them, and goes on
/// with pauses only while they save wake-ups. Without enough datagrams to wait for there are none.
package struct BatchCoalescer: Sendable {
    /// Bounds of the pauses.
    package struct Limits: Sendable {
        /// Longest time from one wake-up to the end of the pause before the next, in nanoseconds.
        package var longest: Int64 = 500_000
        /// Fewest datagrams to be expected in that time for pauses to begin.
        ///
        /// They end with less than half of them, as frames come in bursts.
        package var leastExpected = 2.0
        /// Fewest wake-ups saved for each datagram.
        package var leastSaved = 1.0 / 8

        package init() {}
    }

    /// Period with pauses or without them, to measure what they save or to save it.
    enum Phase: Equatable {
        /// Too few datagrams come.
        case idle
        /// No pauses, to measure the batches without them.
        case measuringApart
        /// Pauses, to measure the batches with them.
        case measuringTogether
        /// Pauses, as they were found to save wake-ups.
        case pausing
        /// No pauses, as they were found to save too little.
        case refraining
    }

    private let limits: Limits
    private(set) var phase = Phase.idle
    private var phaseEnd: Instant
    /// Time until pauses are tried again after they saved too little, in nanoseconds.
    private var refrainingTime = Self.decisionTime
    /// Batches and datagrams of a measuring phase.
    private var batches = 0
    private var datagrams = 0
    /// Mean number of datagrams of a batch without pauses.
    private var apart = 1.0
    /// Recent datagrams, each counting less with time.
    private var recent = 0.0
    private var lastRound: Instant

    /// Time over which the datagrams' rate is measured, in nanoseconds: three frames.
    private static let rateTime = 100_000_000.0
    /// Length of a measuring phase, in nanoseconds.
    private static let measuringTime: Int64 = 10_000_000
    /// Time for which a decision holds, in nanoseconds.
    private static let decisionTime: Int64 = 250_000_000
    /// The same for pauses that saved too little several times in a row, as trying delays packets.
    private static let longestRefraining: Int64 = 4_000_000_000

    init(_ limits: Limits = Limits(), at now: Instant) {
        self.limits = limits
        phaseEnd = now
        lastRound = now
    }

    /// End of the pause after the round that began at `wakeTime`; `nil` for none.
    ///
    /// A pause has to follow one that something was received in: else datagrams have become few.
    func pauseEnd(after wakeTime: Instant) -> Instant? {
        switch phase {
        case .idle, .measuringApart, .refraining: return nil
        case .measuringTogether, .pausing:
            guard wakeTime.nanoseconds(since: lastRound) <= limits.longest else { return nil }
            return wakeTime.advanced(nanoseconds: limits.longest)
        }
    }

    /// Notes a round that began at `now` and received `count` datagrams from the sockets.
    mutating func noteRound(received count: Int, at now: Instant) {
        guard count > 0 else { return }
        let elapsed = Double(max(0, now.nanoseconds(since: lastRound)))
        lastRound = now
        recent = recent * max(0, 1 - elapsed / Self.rateTime) + Double(count)
        batches += 1
        datagrams += count
        let least = phase == .idle ? limits.leastExpected : limits.leastExpected / 2
        guard expected >= least else {
            phase = .idle
            refrainingTime = Self.decisionTime
            return
        }
        guard phase == .idle || now >= phaseEnd else { return }
        advance(at: now)
    }

    /// Datagrams to be expected in the longest pause.
    private var expected: Double { recent * Double(limits.longest) / Self.rateTime }

    private mutating func advance(at now: Instant) {
        let mean = Double(datagrams) / Double(max(1, batches))
        switch phase {
        case .idle, .pausing, .refraining: begin(.measuringApart, for: Self.measuringTime, at: now)
        case .measuringApart:
            apart = mean
            // Batches that are large anyway cannot save much.
            if 1 / apart <= limits.leastSaved {
                refrain(at: now)
            } else {
                begin(.measuringTogether, for: Self.measuringTime, at: now)
            }
        case .measuringTogether:
            guard 1 / apart - 1 / mean >= limits.leastSaved else { return refrain(at: now) }
            refrainingTime = Self.decisionTime
            begin(.pausing, for: Self.decisionTime, at: now)
        }
    }

    private mutating func refrain(at now: Instant) {
        begin(.refraining, for: refrainingTime, at: now)
        refrainingTime = min(2 * refrainingTime, Self.longestRefraining)
    }

    private mutating func begin(_ phase: Phase, for nanoseconds: Int64, at now: Instant) {
        self.phase = phase
        phaseEnd = now.advanced(nanoseconds: nanoseconds)
        batches = 0
        datagrams = 0
    }
}

/// Rests of a worker without media: thousands of connected viewers of silent rooms send checks and
/// reports, and each would wake it up.
///
/// While nothing else has come for `quietNanoseconds`, all sources are left alone for
/// `restNanoseconds` after each wake-up, so that what comes meanwhile is handled together. Media, a
/// handshake or a command ends that: only the first packet after a silence is delayed.
struct QuietRest: Sendable {
    /// Time without media, handshakes and commands after which a worker rests, in nanoseconds;
    /// longer than the pauses of sound that is sent discontinuously.
    static let quietNanoseconds: Int64 = 1_000_000_000
    /// Length of a rest, in nanoseconds.
    static let restNanoseconds: Int64 = 5_000_000

    private var lastWork: Instant

    init(at now: Instant) { lastWork = now }

    /// Notes media, a handshake or a command.
    mutating func noteWork(at now: Instant) { lastWork = now }

    /// End of the rest after the round that began at `wakeTime`; `nil` for none.
    func end(after wakeTime: Instant) -> Instant? {
        guard wakeTime.nanoseconds(since: lastWork) >= Self.quietNanoseconds else { return nil }
        return wakeTime.advanced(nanoseconds: Self.restNanoseconds)
    }
}
