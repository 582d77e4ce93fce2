import Testing

@testable import SFU

/// A viewer on a line that lets next to nothing through for a moment, again and again, as a radio
/// does in a handover.
struct StallingPathTests {
    /// Seconds from one stall to the next, and their number.
    private static let interval = 8.0
    private static let count = 7

    /// Returns a line of so many kilobits a second that stalls for so many seconds at a time.
    private static func line(_ kilobits: Double, stall: Double) -> Line {
        var capacity = [(second: 0.0, kilobits: kilobits)]
        for number in 1...count {
            let begin = Double(number) * interval
            capacity += [(begin, 40), (begin + stall, kilobits)]
        }
        return Line("handover-\(Int(kilobits))-\(Int(stall * 1_000))", capacity, queue: 700)
    }

    @Test(arguments: [2_000, 5_000] as [Double], [0.2, 0.35, 0.5])
    func `a layer outlasts handovers`(kilobits: Double, stall: Double) throws {
        let seen = try LineCall(Self.line(kilobits, stall: stall), isBusy: false, seed: 1).watch()
        #expect(seen.widths == [])
        // The picture stands while nothing gets through, and for as long as a packet takes.
        #expect(seen.frozen <= Double(Self.count) * (stall + 0.15))
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
