import RTP
import Testing
import WorkerInterface

@testable import SFU

/// Distribution of a link's bandwidth.
@Suite struct LinkSharesTests {
    static let start = Instant(nanoseconds: 1_000_000_000_000)

    private static func claims(_ held: Int...) -> [LinkShares.Claim] {
        held.map { LinkShares.Claim(bitrates: [100_000, 500_000], held: $0, isScreen: false) }
    }

    /// Distributes once, at a number of milliseconds.
    private static func given(
        _ shares: inout LinkShares,
        _ claims: [LinkShares.Claim],
        _ limit: Int,
        isFull: Bool = false,
        at milliseconds: Int64
    ) -> [Int] {
        let now = start.advanced(milliseconds: milliseconds)
        return shares.share(claims, within: limit, beside: 50_000, isFull: isFull, at: now).given
    }

    @Test func `higher encodings go first, and those of screens last`() {
        var shares = LinkShares()
        var claims = Self.claims(2, 2)
        claims[1].isScreen = true
        #expect(Self.given(&shares, claims, 1_000_000, isFull: true, at: 0) == [1, 2])
        shares = LinkShares()
        #expect(Self.given(&shares, Self.claims(2, 2), 400_000, isFull: true, at: 0) == [1, 1])
    }

    @Test func `the lowest encodings stay until they alone have been too much for a while`() {
        var shares = LinkShares()
        let claims = Self.claims(1, 1)
        for at in [0, 1_000, 2_900] as [Int64] {
            #expect(Self.given(&shares, claims, 180_000, isFull: true, at: at) == [1, 1])
        }
        #expect(Self.given(&shares, claims, 180_000, isFull: true, at: 3_000) == [1, 0])
        // The time begins again after the path was enough.
        shares = LinkShares()
        for at in [0, 2_000] as [Int64] {
            #expect(Self.given(&shares, claims, 180_000, isFull: true, at: at) == [1, 1])
        }
        _ = Self.given(&shares, claims, 300_000, at: 2_500)
        #expect(Self.given(&shares, claims, 180_000, isFull: true, at: 3_500) == [1, 1])
    }

    @Test func `what is needed is told with the room that a return takes`() {
        var shares = LinkShares()
        let now = Self.start
        let told = shares.share(
            Self.claims(0),
            within: 60_000,
            beside: 50_000,
            isFull: false,
            at: now
        )
        #expect(told.given == [0])
        // A link's headers take 9 % more.
        #expect(told.next == 50_000 + 136_250)
    }

    @Test func `what was withheld comes back after a rest, a failed attempt after a longer one`() {
        var shares = LinkShares()
        #expect(Self.given(&shares, Self.claims(2), 300_000, isFull: true, at: 0) == [1])
        #expect(Self.given(&shares, Self.claims(1), 2_000_000, at: 4_900) == [1])
        #expect(Self.given(&shares, Self.claims(1), 2_000_000, at: 5_000) == [2])
        #expect(Self.given(&shares, Self.claims(2), 300_000, isFull: true, at: 10_000) == [1])
        #expect(Self.given(&shares, Self.claims(1), 2_000_000, at: 39_900) == [1])
        #expect(Self.given(&shares, Self.claims(1), 2_000_000, at: 40_000) == [2])
        // A path that has limited nothing in between is another one.
        #expect(Self.given(&shares, Self.claims(2), 300_000, isFull: true, at: 41_000) == [1])
        shares.forget()
        #expect(Self.given(&shares, Self.claims(2), 300_000, isFull: true, at: 42_000) == [1])
        #expect(Self.given(&shares, Self.claims(1), 2_000_000, at: 47_000) == [2])
    }

    /// Raises within a limit of 1 Mbit/s after 5 s, and falls a second later.
    private static func failed() -> LinkShares {
        var shares = LinkShares()
        _ = given(&shares, claims(2), 300_000, isFull: true, at: 0)
        #expect(given(&shares, claims(1), 1_000_000, at: 5_000) == [2])
        #expect(given(&shares, claims(2), 300_000, isFull: true, at: 6_000) == [1])
        return shares
    }

    @Test func `the rest after a failed raise is short where the path has become wider since`() {
        var shares = Self.failed()
        // No wider than at the raise, not for long, or not delivered.
        for at in [12_000, 13_500] as [Int64] {
            #expect(Self.given(&shares, Self.claims(1), 1_499_999, at: at) == [1])
        }
        for at in [14_000, 14_900] as [Int64] {
            #expect(Self.given(&shares, Self.claims(1), 1_500_000, at: at) == [1])
        }
        #expect(Self.given(&shares, Self.claims(1), 1_500_000, isFull: true, at: 14_950) == [1])
        for at in [15_000, 15_900] as [Int64] {
            #expect(Self.given(&shares, Self.claims(1), 1_500_000, at: at) == [1])
        }
        #expect(Self.given(&shares, Self.claims(1), 1_500_000, at: 16_000) == [2])
        // A further failure has the longer rest that it would have had.
        #expect(Self.given(&shares, Self.claims(2), 300_000, isFull: true, at: 17_000) == [1])
        #expect(Self.given(&shares, Self.claims(1), 1_500_000, at: 76_900) == [1])
        #expect(Self.given(&shares, Self.claims(1), 1_500_000, at: 77_000) == [2])
    }

    @Test func `a rest is never shorter than after any fall`() {
        var shares = Self.failed()
        for at in [6_500, 7_500, 10_900] as [Int64] {
            #expect(Self.given(&shares, Self.claims(1), 1_500_000, at: at) == [1])
        }
        #expect(Self.given(&shares, Self.claims(1), 1_000_000, at: 11_000) == [2])
    }

    @Test func `a video that is not sent at all comes back sooner than a higher encoding`() {
        var shares = LinkShares()
        for at in [0, 3_000] as [Int64] {
            _ = Self.given(&shares, Self.claims(1, 1), 180_000, isFull: true, at: at)
        }
        #expect(Self.given(&shares, Self.claims(1, 0), 2_000_000, at: 4_900) == [1, 0])
        #expect(Self.given(&shares, Self.claims(1, 0), 2_000_000, at: 5_000) == [1, 1])
        #expect(Self.given(&shares, Self.claims(1, 0), 260_000, at: 5_100) == [1, 0])
    }

    @Test func `a short dip of the estimate costs nothing where packets are not queued`() {
        var shares = LinkShares()
        #expect(Self.given(&shares, Self.claims(2), 560_000, at: 0) == [2])
        #expect(Self.given(&shares, Self.claims(2), 560_000, at: 1_900) == [2])
        #expect(Self.given(&shares, Self.claims(2), 560_000, at: 2_000) == [1])
    }
}
