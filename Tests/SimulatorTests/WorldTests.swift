import SFU
import Testing

/// Whole rooms by seed: what `make simulate` does for hours, for a moment.
@Suite struct WorldTests {
    static let identity = try? DTLSIdentity()
    static let seeds: [UInt64] = [1, 2, 3]

    @Test(arguments: seeds)
    func `M1 all that must hold does, whatever goes wrong`(seed: UInt64) throws {
        let world = World(seed: seed, identity: try #require(Self.identity))
        let violation = world.live(.short)
        #expect(violation == nil, "again: make simulate SEED=\(seed) LENGTH=short")
        #expect(world.tally.frames > 100 && world.tally.alive > 0, "too little to tell")
    }

    @Test func `M1 the same seed is the same history`() throws {
        let identity = try #require(Self.identity)
        let hashes = (0..<2).map { _ in
            let world = World(seed: 4, identity: identity)
            _ = world.live(.short)
            return world.trace.value
        }
        #expect(hashes[0] == hashes[1])
    }
}
