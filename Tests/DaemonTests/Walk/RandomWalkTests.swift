import Foundation
import TestSupport
import Testing

/// Comparison of the control plane with a naive model of the contract, call by call.
@Suite struct RandomWalkTests {
    /// Reads `SFUD_WALK`, the number of calls, or `SFUD_WALK_SEED`, the seed.
    private static func number(_ name: String) -> UInt64? {
        ProcessInfo.processInfo.environment[name].flatMap { UInt64($0) }
    }

    static let seeds =
        number("SFUD_WALK_SEED").map { [$0] } ?? Array(Extent.seeds(2, short: 1))

    @Test(arguments: seeds)
    func `A0 to A4 random calls are answered as the contract says`(seed: UInt64) {
        let count = Int(Self.number("SFUD_WALK") ?? 3_000)
        var walk = RandomWalk(seed: seed)
        walk.run(count)
        if let disagreement = walk.disagreement { Issue.record("\(disagreement)") }
        #expect(walk.refusals > walk.steps / 6, "too few refusals to tell")
        #expect(walk.restarts > walk.steps / 400, "too few restarts to tell")
        guard Self.number("SFUD_WALK") != nil else { return }
        print(
            "\(walk.steps) calls, \(walk.refusals) of them refused, \(walk.met.count) pairs of",
            "method and code:",
            walk.met.sorted().joined(separator: ", ")
        )
    }
}
