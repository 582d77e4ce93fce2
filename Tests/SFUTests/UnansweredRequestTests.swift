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
