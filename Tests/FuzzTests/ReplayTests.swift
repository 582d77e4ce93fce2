import TestSupport
import Testing

@testable import FuzzTargets
@testable import SFU

/// Replays the kept fuzzing corpus, with small mutations, without a fuzzer.
@Suite struct ReplayTests {
    @Test(arguments: FuzzTarget.allCases)
    func `takes its kept corpus, and the same way twice`(target: FuzzTarget) throws {
        let inputs = Corpus.inputs(of: target)
        #expect(!inputs.isEmpty)
        var sum = 0
        for input in inputs {
            let figure = try target.run(input)
            #expect(try target.run(input) == figure)
            sum &+= figure
        }
        #expect(sum != 0)
    }

    @Test(arguments: FuzzTarget.allCases.filter(\.isParser))
    func `takes its corpus cut at every byte`(target: FuzzTarget) throws {
        for input in Corpus.inputs(of: target) {
            for length in 0..<input.count { _ = try target.run(Array(input[..<length])) }
        }
    }

    /// Runs 200,000 inputs over all parsers together, with `SFUD_SEEDS=full` a million; the slower
    /// targets have a few.
    @Test(arguments: FuzzTarget.allCases)
    func `takes mutations of its corpus`(target: FuzzTarget) throws {
        var numbers = SeededRandom(seed: 20_261_121)
        let inputs = Corpus.inputs(of: target)
        // One input of the plan target sends thousands of messages.
        let few = target == .plan ? 10 : 200
        let rounds = target.isParser ? Extent.count(90_000, short: 18_000) : few
        var sum = 0
        for round in 0..<rounds {
            var bytes = inputs[round % inputs.count]
            guard !bytes.isEmpty else { continue }
            for _ in 0...numbers.next() % 4 {
                let number = numbers.next()
                let index = Int(number >> 32) % bytes.count
                bytes[index] = UInt8(truncatingIfNeeded: number)
            }
            let cut = numbers.next()
            if cut % 4 == 0 { bytes.removeLast(Int(cut >> 32) % bytes.count) }
            sum &+= try target.run(bytes)
        }
        #expect(sum != 0)
    }

    @Test(arguments: FuzzTarget.allCases.filter { $0 != .plan })
    func `takes every file of the samples, where they are`(target: FuzzTarget) throws {
        for sample in Corpus.samples { _ = try target.run(Array(sample.prefix(65_535))) }
    }
}
