import RTP
import Testing

@testable import Keeper

struct RestartPolicyTests {
    /// Lives with the milliseconds from the death before to this one.
    struct Story: CustomTestStringConvertible, Sendable {
        var testDescription: String
        var deaths: [(wasReady: Bool, after: Int64)]
        var delays: [Int64]
    }

    static let stories = [
        Story(testDescription: "one crash", deaths: [(true, 0)], delays: [0]),
        Story(
            testDescription: "crash after crash",
            deaths: Array(repeating: (true, 100), count: 7),
            delays: [0, 25, 50, 100, 200, 200, 200]
        ),
        Story(
            testDescription: "a crash every second",
            deaths: Array(repeating: (true, 1_000), count: 4),
            delays: [0, 0, 0, 0]
        ),
        Story(
            testDescription: "it does not get ready",
            deaths: Array(repeating: (false, 10), count: 9),
            delays: [50, 100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000]
        ),
        Story(
            testDescription: "readiness ends the long delays",
            deaths: [(false, 10), (false, 10), (true, 10), (false, 10)],
            delays: [50, 100, 0, 50]
        ),
    ]

    @Test(arguments: stories)
    func `delays grow with what goes wrong`(_ story: Story) {
        var policy = RestartPolicy()
        var now = Instant(nanoseconds: 1_000_000_000)
        let delays = story.deaths.map { death in
            now = now.advanced(milliseconds: death.after)
            return policy.delay(afterReady: death.wasReady, at: now)
        }
        #expect(delays == story.delays)
    }

    @Test func `ten thousand deaths neither overflow nor pile up`() {
        for wasReady in [true, false] {
            var policy = RestartPolicy()
            var now = Instant(nanoseconds: 0)
            for _ in 0..<10_000 {
                let delay = policy.delay(afterReady: wasReady, at: now)
                #expect((0...5_000).contains(delay))
                now = now.advanced(milliseconds: 1)
            }
        }
    }
}
