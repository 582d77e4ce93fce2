import RTP
import SFU
import TestSupport
import Testing

@testable import Simulator

/// Whole rooms by seed: a short version of `make simulate`.
@Suite struct WorldTests {
    static let identity = try? DTLSIdentity()

    @Test func `M1 all invariants hold, and a seed reproduces its history`() throws {
        let identity = try #require(Self.identity)
        let seed: UInt64 = 77
        let worlds = (0..<2).map { _ in World(seed: seed, identity: identity) }
        for world in worlds {
            let violation = world.live(.moment)
            #expect(violation == nil, "again: make simulate SEED=\(seed) LENGTH=moment")
            #expect(world.tally.frames > 20 && world.tally.alive > 0, "too little to tell")
        }
        #expect(worlds[0].trace.value == worlds[1].trace.value)
    }

    @Test(arguments: AdversaryPlan.allCases)
    func `C4 an adversary costs nobody else anything`(_ plan: AdversaryPlan) throws {
        let identity = try #require(Self.identity)
        // The world of the first seed has two rooms and many people, the other one a few.
        let seed: UInt64 = Extent.count(1, short: 2)
        let world = World(seed: seed, identity: identity, adversary: .always, onlyPlan: plan)
        let violation = world.live(.moment)
        let flags = "--adversary always --plan \(plan.rawValue)"
        #expect(violation == nil, "again: SEED=\(seed) LENGTH=moment SIMULATE_FLAGS=\"\(flags)\"")
        #expect(world.tally.hostile > 10 && world.tally.frames > 20, "too little to tell")
    }

    /// Milliseconds that the clock shows in the middle of a history.
    enum Uptime: Int64, CaseIterable, Sendable {
        case microsecondsIn32Bits = 4_294_967
        case millisecondsIn31Bits = 2_147_483_648
        case millisecondsIn32Bits = 4_294_967_296
        case aThousandDays = 86_400_000_000
    }

    @Test(arguments: Uptime.allCases)
    func `L10 a clock that has gone for long is a clock like others`(_ uptime: Uptime) throws {
        let identity = try #require(Self.identity)
        let start = Instant(nanoseconds: (uptime.rawValue - 3_000) * 1_000_000)
        let world = World(seed: 77, identity: identity, start: start)
        let violation = world.live(.moment)
        #expect(violation == nil)
        #expect(world.seconds > 6 && world.tally.frames > 20 && world.tally.alive > 0)
    }

    @Test func `M1 a bug that is planted is found`() throws {
        let identity = try #require(Self.identity)
        let world = World(seed: 1, identity: identity, plant: .doubleReply)
        #expect(world.live(.moment)?.invariant == .replies)
    }
}
