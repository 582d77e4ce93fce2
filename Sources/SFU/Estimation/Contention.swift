/// Detector of loss-based flows (TCP) that keep the bottleneck's queue full.
///
/// A sender that backs off whenever a queue grows gets no share beside such a flow. As the queue
/// may be our own, a test sends less than was acknowledged for a few seconds. If the queue does not
/// shrink, it belongs to another flow. The test is repeated from time to time. A queue that does
/// not change at all, and loses nothing, is none: the path itself has become longer. That needs no
/// test, and ends one, as a queue varies with what is sent, and a full one loses packets. Once a
/// flow was found, it takes a whole test: a deep queue may be full for seconds before we lose any.
///
/// With the lowest layers alone there is nothing to test with. But then far less is sent than
/// before, and a queue that is still there and overflows is not ours.
struct Contention {
    private enum State {
        case none
        case testing(until: Int64, from: Double)
        case contended(until: Int64, isTested: Bool)
    }

    /// Length of a test, and the pause before the next one if the queue did not shrink, in
    /// nanoseconds.
    private static let test: Int64 = 3_000_000_000
    private static let pause: Int64 = 20_000_000_000
    /// Nanoseconds for which a loss shows that a queue overflows, where no test is made.
    private static let overflow: Int64 = 5_000_000_000

    private var state = State.none

    /// Signal that controls the rate; `longerPath`: none, as no queue was seen since the last test
    /// began.
    enum Rule { case delay, longerPath, test, loss }

    /// Advances the test with the present state of the queue.
    ///
    /// - Parameters:
    ///   - queue: The queue, of which a longer path becomes the new base.
    ///   - hasLoss: Whether more than some packets are lost.
    ///   - lastLoss: The send time of the last lost packet, in nanoseconds.
    ///   - deliversNearlyAll: Whether nearly all that is sent is delivered.
    ///   - mayTest: Whether less can be sent than was acknowledged.
    ///   - now: The time of the feedback, in nanoseconds.
    /// - Returns: The signal to follow until the next call.
    mutating func update(
        _ queue: inout StandingQueue,
        hasLoss: Bool,
        lastLoss: Int64,
        deliversNearlyAll: Bool,
        mayTest: Bool,
        at now: Int64
    ) -> Rule {
        guard queue.isHeld else {
            state = .none
            return .delay
        }
        let isLossless = !hasLoss && now &- lastLoss > StandingQueue.steadyTime
        switch state {
        case .none where isLossless && queue.isSteady, .testing where isLossless && queue.isSteady:
            queue.rebase()
            state = .none
            return .longerPath
        case .none where !mayTest:
            guard now &- lastLoss < Self.overflow, deliversNearlyAll else { return .delay }
            state = .contended(until: now &+ Self.pause, isTested: false)
            return .loss
        case .none:
            state = .testing(until: now &+ Self.test, from: queue.delay)
            return .test
        case .testing(let until, let from) where now >= until:
            // A queue that has halved is draining.
            guard queue.delay > from / 2 else {
                state = .none
                return .delay
            }
            guard hasLoss || !queue.isSteady else {
                queue.rebase()
                state = .none
                return .longerPath
            }
            state = .contended(until: now &+ Self.pause, isTested: true)
            return .loss
        case .testing:
            return .test
        case .contended(_, isTested: false) where !deliversNearlyAll:
            // The queue grows by what we send.
            state = .none
            return .delay
        case .contended(let until, _):
            guard now >= until else { return .loss }
            state = .testing(until: now &+ Self.test, from: queue.delay)
            return .test
        }
    }

    /// Computes the rate that TCP would get (RFC 5348 §3.1).
    ///
    /// - Parameters:
    ///   - loss: The loss event rate, 0 to 1.
    ///   - roundTrip: The round-trip time in nanoseconds.
    ///   - packet: The packet size in bytes.
    /// - Returns: The rate in bits a second.
    static func fairRate(loss: Double, roundTrip: Int64, packet: Double) -> Double {
        let share = min(max(loss, 0.000_1), 1)
        let seconds = max(Double(roundTrip) / 1e9, 0.01)
        let timeout = 4 * seconds
        let events = 3 * (3 * share / 8).squareRoot()
        let time =
            seconds * (2 * share / 3).squareRoot()
            + timeout * min(events, 1) * share * (1 + 32 * share * share)
        return 8 * packet / time
    }
}
