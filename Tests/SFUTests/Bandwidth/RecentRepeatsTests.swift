import RTP
import Testing

@testable import SFU

/// Packets that a subscriber asks for again while their repetition is on its way.
struct RecentRepeatsTests {
    struct Row: CustomTestStringConvertible, Sendable {
        var testDescription: String
        var number: UInt16 = 500
        var slot = 3
        /// Milliseconds after the repetition of packet 500 through slot 3.
        var later: Int64
        var expected: Bool
    }

    static let rows = [
        Row(testDescription: "a moment later", later: 1, expected: true),
        Row(testDescription: "at the end", later: 149, expected: true),
        Row(testDescription: "after it", later: 150, expected: false),
        Row(testDescription: "a second copy at once", later: 0, expected: false),
        Row(testDescription: "another packet", number: 501, later: 10, expected: false),
        Row(testDescription: "half the numbers away", number: 33_268, later: 10, expected: false),
        Row(testDescription: "one with the same low bits", number: 532, later: 10, expected: false),
        Row(testDescription: "the same number elsewhere", slot: 4, later: 10, expected: false),
    ]

    @Test(arguments: rows, [1_000, 1 << 40, (1 << 32) - 50] as [Int64])
    func `a packet counts as repeated until it can have arrived`(_ row: Row, begin: Int64) {
        var repeats = RecentRepeats()
        let start = Instant(nanoseconds: begin * 1_000_000)
        repeats.note(SequenceNumber(rawValue: 500), of: SlotIndex(3), at: start)
        let found = repeats.contains(
            SequenceNumber(rawValue: row.number),
            of: SlotIndex(row.slot),
            within: 150,
            at: start.advanced(milliseconds: row.later)
        )
        #expect(found == row.expected)
    }

    @Test func `nothing was repeated at first`() {
        let repeats = RecentRepeats()
        for number in 0...UInt16.max {
            let found = repeats.contains(
                SequenceNumber(rawValue: number),
                of: SlotIndex(0),
                within: .max,
                at: Instant(nanoseconds: 5_000_000_000)
            )
            if found { Issue.record("\(number)") }
        }
    }

    /// Round trips in milliseconds, times after a repetition, and whether it may still be on its
    /// way.
    static let flights: [(roundTrip: Int?, later: Int64, expected: Bool)] = [
        (nil, 1, false), (0, 1, false), (80, 1, false), (82, 1, true), (82, 2, false),
        (300, 219, true), (300, 220, false), (480, 399, true), (480, 400, false),
        (9_000, 399, true), (9_000, 400, false),
    ]

    @Test(arguments: flights)
    func `a repetition is on its way for a round trip without the wait of feedback`(
        roundTrip: Int?,
        later: Int64,
        expected: Bool
    ) {
        var path = path(roundTrip: roundTrip)
        path.noteRepeat(of: SequenceNumber(rawValue: 7), of: SlotIndex(0), at: Self.start)
        let found = isRepeated(path, later: later)
        #expect(found == expected)
    }

    @Test func `repetitions on an earlier path do not count`() {
        var path = path(roundTrip: 300)
        path.noteRepeat(of: SequenceNumber(rawValue: 7), of: SlotIndex(0), at: Self.start)
        path.restart(at: Self.start)
        path.receiveLoss(fraction: 0, roundTripMilliseconds: 300, at: Self.start)
        let found = isRepeated(path, later: 10)
        #expect(!found)
    }

    private static let start = Instant(nanoseconds: 5_000_000_000)

    private func path(roundTrip: Int?) -> PathBandwidth {
        var path = PathBandwidth(at: Self.start)
        path.receiveLoss(fraction: 0, roundTripMilliseconds: roundTrip, at: Self.start)
        return path
    }

    private func isRepeated(_ path: borrowing PathBandwidth, later: Int64) -> Bool {
        path.isRepeated(
            SequenceNumber(rawValue: 7),
            of: SlotIndex(0),
            at: Self.start.advanced(milliseconds: later)
        )
    }
}
