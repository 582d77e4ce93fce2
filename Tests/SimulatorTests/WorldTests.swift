import SFU
import Testing

/// Whole rooms by seed: what `make simulate` does for hours, for a moment.
@Suite struct WorldTests {
    static let identity = try? DTLSIdentity()

    @Test func `M1 all that must hold does, and the same seed is the same history`() throws {
        let identity = try #require(Self.identity)
        let seed: UInt64 = 2
        let worlds = (0..<2).map { _ in World(seed: seed, identity: identity) }
        for world in worlds {
            let violation = world.live(.moment)
            #expect(violation == nil, "again: make simulate SEED=\(seed) LENGTH=moment")
            #expect(world.tally.frames > 20 && world.tally.alive > 0, "too little to tell")
        }
        #expect(worlds[0].trace.value == worlds[1].trace.value)
    }

    @Test func `M1 a bug that is planted is found`() throws {
        let identity = try #require(Self.identity)
        let world = World(seed: 1, identity: identity, plant: .doubleReply)
        #expect(world.live(.moment)?.invariant == .replies)
    }
}
