import RTP
import Testing

@testable import SFU
@testable import WorkerInterface

/// Nonces of our own checks: valid for a round trip, and for their destination address only.
@Suite struct ConsentNonceTests {
    private static let path = Path(remote: Address(ipv4: 0x0a00_0001, port: 10_000), local: 0)
    private static let other = Path(remote: Address(ipv4: 0x0a00_0002, port: 10_000), local: 0)

    private static func time(_ milliseconds: Int64) -> Instant {
        Instant(nanoseconds: 0).advanced(milliseconds: milliseconds)
    }

    private static func agent() -> ICEAgent {
        ICEAgent(
            ICECredentials(
                localFragment: "core",
                localPassword: "corepassword0123456789",
                remoteFragment: "peer",
                remotePassword: "peerpassword0123456789"
            )
        )
    }

    @Test func `a check of a new address is repeated under its nonce for a round trip`() {
        var agent = Self.agent()
        let result1 = agent.beginMove(Self.path, nonce: 1, at: Self.time(0))
        #expect(result1 == 1)
        let result2 = agent.beginMove(Self.path, nonce: 2, at: Self.time(20))
        #expect(result2 == nil)
        let result3 = agent.beginMove(Self.path, nonce: 3, at: Self.time(60))
        #expect(result3 == 1)
        let result4 = agent.beginMove(Self.path, nonce: 4, at: Self.time(1_900))
        #expect(result4 == 1)
        #expect(agent.move?.nonce == 1)
        let result5 = agent.beginMove(Self.path, nonce: 5, at: Self.time(2_100))
        #expect(result5 == 5)
        let result6 = agent.beginMove(Self.other, nonce: 6, at: Self.time(2_160))
        #expect(result6 == 6)
    }

    @Test func `a check for consent is repeated under its nonce for a round trip`() {
        var consent = PathConsent()
        let result7 = consent.ask(Self.path, nonce: 1, at: Self.time(0), random: 0)
        #expect(result7 == 1)
        let result8 = consent.ask(Self.path, nonce: 2, at: Self.time(20), random: 0)
        #expect(result8 == nil)
        let result9 = consent.ask(Self.path, nonce: 3, at: Self.time(60), random: 0)
        #expect(result9 == 1)
        let result10 = consent.ask(Self.path, nonce: 4, at: Self.time(2_100), random: 0)
        #expect(result10 == 4)
        let result11 = consent.ask(Self.other, nonce: 5, at: Self.time(2_200), random: 0)
        #expect(result11 == 5)
    }

    @Test(arguments: 0..<20 as Range<UInt64>)
    func `processes that live for two seconds each keep consent alive`(seed: UInt64) throws {
        var given = Self.time(0)
        for life in 1...60 as ClosedRange<Int64> {
            let start = Self.time(2_000 * life)
            var consent = PathConsent()
            consent.resume(Self.path, given: given, at: start, random: seed &* 7_919)
            let due = try #require(consent.due)
            #expect(due >= start && due.milliseconds(since: given) >= 5_000)
            if due < Self.time(2_000 * life + 2_000) { given = due }
            #expect(start.milliseconds(since: given) < 8_000)
        }
    }

    @Test func `an answer counts once, and only from where the check went`() {
        var consent = PathConsent()
        _ = consent.ask(Self.path, nonce: 1, at: Self.time(0), random: 0)
        let fromElsewhere = consent.matchesCheck(1, on: Self.other, at: Self.time(20))
        let other = consent.matchesCheck(2, on: Self.path, at: Self.time(20))
        let first = consent.matchesCheck(1, on: Self.path, at: Self.time(20))
        #expect(!fromElsewhere && !other && first)
        consent.renew(Self.path, at: Self.time(20), random: 0)
        let again = consent.matchesCheck(1, on: Self.path, at: Self.time(30))
        #expect(!again)
    }

    @Test func `a withheld answer is ignored`() {
        var consent = PathConsent()
        _ = consent.ask(Self.path, nonce: 1, at: Self.time(0), random: 0)
        #expect(consent.matchesCheck(1, on: Self.path, at: Self.time(10_000)))
        #expect(!consent.matchesCheck(1, on: Self.path, at: Self.time(10_001)))
        var agent = Self.agent()
        _ = agent.beginMove(Self.path, nonce: 1, at: Self.time(0))
        #expect(agent.isMove(1, to: Self.path, at: Self.time(10_000)))
        #expect(!agent.isMove(1, to: Self.path, at: Self.time(10_001)))
        #expect(!agent.isMove(1, to: Self.other, at: Self.time(20)))
    }

    @Test func `a check without an answer is repeated soon, three times`() {
        var consent = PathConsent()
        consent.renew(Self.path, at: Self.time(0), random: 1_000)
        var asked: [Int64] = []
        for millisecond in 0..<12_000 as Range<Int64>
        where consent.due.isDue(at: Self.time(millisecond)) {
            _ = consent.ask(Self.path, nonce: 7, at: Self.time(millisecond), random: 1_000)
            asked.append(millisecond)
        }
        #expect(asked == [5_000, 5_500, 6_000, 6_500, 11_500])
    }

    @Test func `who names two addresses in turn is asked no more often`() {
        var agent = Self.agent()
        var checks = 0
        for millisecond in 0..<1_000 as Range<Int64> {
            let path = millisecond % 2 == 0 ? Self.path : Self.other
            let nonce = agent.beginMove(path, nonce: 1, at: Self.time(millisecond))
            if nonce != nil { checks += 1 }
        }
        #expect(checks == 20)
    }
}
