import RTP
import Testing

@testable import SFU

@Suite struct UnansweredRequestTests {
    /// Requests may be lost themselves: a picture must arrive five seconds after the path recovers.
    @Test func `an unanswered request is repeated every four seconds at least`() {
        var requests = KeyframeRequests()
        var now = Instant(nanoseconds: 0)
        _ = requests.want(at: now, bitrate: 0)
        var asked = [now]
        while now.nanoseconds < 60_000_000_000 {
            now = now.advanced(milliseconds: 10)
            if requests.isDue(at: now) { asked.append(now) }
        }
        let gaps = zip(asked, asked.dropFirst()).map { $1.milliseconds(since: $0) }
        #expect(gaps.count > 15 && gaps.allSatisfy { $0 <= 4_000 }, "\(gaps)")
        // Nor so often that it does harm.
        #expect(gaps.suffix(10).allSatisfy { $0 >= 3_000 }, "\(gaps)")
    }

    /// A request that sfud held back is not the publisher's fault.
    @Test func `a keyframe is overdue half a second after it was asked for`() {
        var requests = KeyframeRequests()
        let start = Instant(nanoseconds: 0)
        _ = requests.wantClimb(
            at: start,
            bitrate: 0,
            notBefore: start.advanced(milliseconds: 2_000)
        )
        var times: [Int64] = []
        for milliseconds: Int64 in stride(from: 0, to: 4_000, by: 10) {
            let now = start.advanced(milliseconds: milliseconds)
            _ = requests.isDue(at: now)
            if requests.isOverdue(after: 500_000_000, at: now) { times.append(milliseconds) }
        }
        #expect(times.first == 2_510 && times.last == 3_990)
        requests.satisfy()
        #expect(!requests.isOverdue(after: 500_000_000, at: start.advanced(milliseconds: 5_000)))
    }

    /// Found by `make simulate SEED=8725`: requests had failed while the publisher was unreachable.
    @Test func `a returning publisher gets a request at once, after any failures`() {
        var requests = KeyframeRequests()
        var now = Instant(nanoseconds: 0)
        _ = requests.want(at: now, bitrate: 0)
        while now.nanoseconds < 4_000_000_000 {
            _ = requests.isDue(at: now)
            now = now.advanced(milliseconds: 10)
        }
        #expect((requests.deadline?.milliseconds(since: now) ?? 0) >= 2_000)
        requests.hear(at: now)
        #expect(requests.deadline == now)
        let isAsked = requests.isDue(at: now)
        #expect(isAsked)
        // One is enough: the next request is treated as the first.
        requests.hear(at: now.advanced(milliseconds: 10))
        #expect(requests.deadline == now.advanced(milliseconds: 400))
    }
}
