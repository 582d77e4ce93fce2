import Foundation
import SFU
import TestSupport
import Testing
import WorkerInterface

/// Fence tests: no packet under a revoked right leaves after the reply that revoked it.
@Suite struct FenceTrialTests {
    /// Number of trials of each term: 1,000 for a proof, fewer in each ordinary run.
    static let trials = Trials.number("SFUD_TRIALS", usually: Extent.count(2, short: 1))

    /// Rooms of one daemon, one after the other.
    private static let rooms = 6

    @Test(arguments: FenceTerm.all)
    func `A0-1 nothing leaves after the reply, and the fence has counted it`(
        _ term: FenceTerm
    ) throws {
        try prove(term, nodes: [])
    }

    @Test(arguments: FenceTerm.all)
    func `nor does it at another node of a cluster`(_ term: FenceTerm) throws {
        try prove(term, nodes: ["a", "b", "c"])
    }

    private func prove(_ term: FenceTerm, nodes: [String]) throws {
        var done = 0
        var seed: UInt64 = 0
        while done < Self.trials {
            seed += 1
            let daemon = try SimulatedDaemon(seed: seed, identity: DTLSIdentity(), nodes: nodes)
            daemon.mostQuarters = [2, 12, 40][Int(seed % 3)]
            daemon.paths.lossPercent = [0, 2, 10][Int(seed % 3)]
            daemon.paths.delay = [1...4, 1...40, 40...80][Int(seed / 3 % 3)]
            var rooms = 0
            while done < Self.trials, rooms < Self.rooms {
                rooms += 1
                var trial = try FenceTrial(term, number: rooms, on: daemon)
                let cycles = term.open == nil ? 1 : 3
                for _ in 0..<cycles where done < Self.trials {
                    try trial.close()
                    try trial.open()
                    done += 1
                }
                try trial.end()
            }
            #expect(daemon.strays == 0)
            // Audio is never sent again.
            let hasVideo = !term.never.contains(.video)
            #expect(!hasVideo || daemon.retransmissions > 0 || rooms < 3, "nothing was sent again")
        }
    }
}

/// Lengths of the proofs.
enum Trials {
    /// Returns the number in the environment, or the usual one.
    static func number(_ name: String, usually: Int) -> Int {
        ProcessInfo.processInfo.environment[name].flatMap { Int($0) } ?? usually
    }
}
