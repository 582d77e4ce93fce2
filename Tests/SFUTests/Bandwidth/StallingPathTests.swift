import Testing

@testable import SFU

/// A viewer on a line that lets next to nothing through for a moment, again and again, as a radio
/// does in a handover.
struct StallingPathTests {
    /// Seconds from one stall to the next, and their number.
    private static let interval = 8.0
    private static let count = 7

    /// Lines of these rates in kilobits a second, with stalls of so many seconds and so many
    /// milliseconds of jitter.
    static let all = [2_000, 5_000].flatMap { (kilobits: Double) in
        [0.2, 0.35, 0.5].flatMap { stall in
            [0, 5, 10].map { line(kilobits, stall: stall, jitter: $0) }
        }
    }
    static let lines = Line.named(in: all) ?? (Scenarios.isFull ? all : some)
    /// Lines of the short run.
    private static let some = all.filter { $0.jitter == 10 && $0.name.contains("-200-") }

    private static func line(_ kilobits: Double, stall: Double, jitter: Double) -> Line {
        var capacity = [(second: 0.0, kilobits: kilobits)]
        for number in 1...count {
            let begin = Double(number) * interval
            capacity += [(begin, 40), (begin + stall, kilobits)]
        }
        return Line(
            "handover-\(Int(kilobits))-\(Int(stall * 1_000))-\(Int(jitter))",
            capacity,
            jitter: jitter,
            queue: 700,
            // The picture stands while nothing gets through, and for as long as a packet takes.
            frozen: Double(count) * (stall + 0.15)
        )
    }

    @Test(arguments: lines, LineTests.seeds)
    func `a layer outlasts handovers`(line: Line, seed: UInt64) throws {
        let seen = try LineCall(line, isBusy: false, seed: seed).watch()
        #expect(seen.widths == [])
        #expect(seen.frozen <= line.frozen)
    }

    @Test(arguments: [1, 2, 3] as [UInt64])
    func `a path that stays slow after a stall gets its layer, and repairs`(seed: UInt64) throws {
        let line = Line(
            "handover-to-250",
            [(0, 3_000), (20, 40), (20.3, 250)],
            queue: 1_500,
            fits: [(0, 1_280), (20, 320)]
        )
        let seen = try LineCall(line, isBusy: false, seed: seed).watch()
        #expect(seen.widths.last == 320 && seen.widths.count <= 2)
        #expect(seen.fitting >= 0.9)
        // The stall of 0.3 s and its queue, and what is lost then is repaired.
        #expect(seen.frozen + seen.frozenAtChanges < 2)
    }
}
