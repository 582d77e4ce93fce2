/// Finds out whether somebody who waits for loss (TCP) keeps the path's queue full.
///
/// Who gives way whenever a queue grows gets nothing beside such a flow. But a full queue may be
/// our own as well: so for a few seconds less is sent than came through, and only if that does
/// not shorten the queue it is another's. It is asked again from time to time.
struct Contention {
    private enum State {
        case none
        case testing(until: Int64, from: Double)
        case contended(until: Int64)
    }

    /// Nanoseconds of a test, and between two while they find the queue held.
    private static let test: Int64 = 3_000_000_000
    private static let pause: Int64 = 20_000_000_000

    private var state = State.none

    /// What the rate should go by.
    enum Rule { case delay, test, loss }

    /// Goes on with what is known of the queue.
    mutating func update(_ queue: StandingQueue, at now: Int64) -> Rule {
        guard queue.isHeld else {
            state = .none
            return .delay
        }
        switch state {
        case .none:
            state = .testing(until: now &+ Self.test, from: queue.delay)
            return .test
        case .testing(let until, let from) where now >= until:
            // A queue half as long is on its way out, if not gone.
            guard queue.delay > from / 2 else {
                state = .none
                return .delay
            }
            state = .contended(until: now &+ Self.pause)
            return .loss
        case .testing:
            return .test
        case .contended(let until):
            guard now >= until else { return .loss }
            state = .testing(until: now &+ Self.test, from: queue.delay)
            return .test
        }
    }

    /// Bits a second that TCP would get with this loss and round trip (RFC 5348 §3.1), for
    /// packets of so many bytes.
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
