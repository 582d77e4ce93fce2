import RTP
import Testing

@testable import SFU

@Suite struct UnansweredRequestTests {
    /// Requests may be what is lost: five seconds after the path is whole a picture must be there.
    @Test func `who does not answer is asked every four seconds at least`() {
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
        // And not so often that it harms.
        #expect(gaps.suffix(10).allSatisfy { $0 >= 3_000 }, "\(gaps)")
    }

    /// `make simulate SEED=8725`: it had been asked in vain while it could not hear.
    @Test func `who is heard again is asked at once, however often in vain before`() {
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
        // Once is enough: it is asked again as if this were the first time.
        requests.hear(at: now.advanced(milliseconds: 10))
        #expect(requests.deadline == now.advanced(milliseconds: 400))
    }
}
