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
        repeats.note(SequenceNumber(rawValue: 500), of: SlotIndex(3), as: nil, at: start)
        let found = repeats.contains(
            SequenceNumber(rawValue: row.number),
            of: SlotIndex(row.slot),
            within: 150,
            by: Self.estimator(),
            at: start.advanced(milliseconds: row.later)
        )
        #expect(found == row.expected)
    }

    /// Outcomes of the copies of a repetition, the second 0 or 1 ms after the first, and whether
    /// the packet is to be repeated again.
    static let outcomes: [([SentPackets.State], Int64, Bool)] = [
        ([.lost], 0, true), ([.missing], 0, false), ([.inFlight], 0, false), ([.arrived], 0, false),
        ([], 0, false), ([.lost, .lost], 0, true), ([.lost, .arrived], 0, false),
        ([.arrived, .lost], 0, false), ([.lost, .inFlight], 0, false),
        ([.missing, .lost], 0, false), ([.arrived, .lost], 1, true), ([.lost, .arrived], 1, false),
        ([.arrived, .lost, .lost], 0, true),
    ]

    @Test(arguments: outcomes)
    func `a repetition of which all copies were lost is found`(
        states: [SentPackets.State],
        apart: Int64,
        isLost: Bool
    ) {
        var repeats = RecentRepeats()
        var estimator = Self.estimator()
        for (index, state) in states.enumerated() {
            let sequence = 65_535 &+ UInt16(index)
            let time = Self.start.advanced(milliseconds: Int64(index) * apart)
            Self.send(sequence, as: state, in: &estimator)
            repeats.note(SequenceNumber(rawValue: 500), of: SlotIndex(3), as: sequence, at: time)
        }
        let place = 500 % RecentRepeats.capacity
        let found = repeats.lost(at: place, by: estimator)
        #expect((found != nil) == isLost)
        if let found { #expect(found.slot == 3 && found.number.rawValue == 500) }
        for other in 0..<RecentRepeats.capacity where other != place {
            #expect(repeats.lost(at: other, by: estimator) == nil)
        }
        // A lost one is not on its way, so that a request for it is answered.
        let isOnItsWay = repeats.contains(
            SequenceNumber(rawValue: 500),
            of: SlotIndex(3),
            within: 150,
            by: estimator,
            at: Self.start.advanced(milliseconds: 5)
        )
        #expect(isOnItsWay == (!isLost && !states.isEmpty))
    }

    @Test func `a repetition in an outage is lost`() {
        var repeats = RecentRepeats()
        var estimator = Self.estimator()
        Self.send(7, as: .missing, in: &estimator)
        repeats.note(SequenceNumber(rawValue: 1), of: SlotIndex(0), as: 7, at: Self.start)
        #expect(repeats.lost(at: 1, by: estimator) == nil)
        // It has been judged without being counted as lost.
        estimator.firstMissing = nil
        #expect(repeats.lost(at: 1, by: estimator) != nil)
    }

    @Test func `a packet is replaced until it has been repeated ten times`() {
        var repeats = RecentRepeats()
        var estimator = Self.estimator()
        var replaced = 0
        for turn in 1...20 as ClosedRange<UInt16> {
            Self.send(turn, as: .lost, in: &estimator)
            let time = Self.start.advanced(milliseconds: Int64(turn) * 50)
            repeats.note(SequenceNumber(rawValue: 1), of: SlotIndex(0), as: turn, at: time)
            if repeats.lost(at: 1, by: estimator) != nil { replaced += 1 }
        }
        #expect(replaced == 9)
    }

    @Test func `a copy that is known no more, or had no number, is not looked for`() {
        var repeats = RecentRepeats()
        var estimator = Self.estimator()
        Self.send(7, as: .lost, in: &estimator)
        repeats.note(SequenceNumber(rawValue: 1), of: SlotIndex(0), as: nil, at: Self.start)
        repeats.note(SequenceNumber(rawValue: 2), of: SlotIndex(0), as: 6, at: Self.start)
        #expect(repeats.lost(at: 1, by: estimator) == nil)
        #expect(repeats.lost(at: 2, by: estimator) == nil)
    }

    private static func estimator() -> BandwidthEstimator {
        BandwidthEstimator(at: start, startBitrate: 300_000, maximum: 10_000_000)
    }

    private static func send(
        _ sequence: UInt16,
        as state: SentPackets.State,
        in estimator: inout BandwidthEstimator
    ) {
        estimator.packets.append(sequence, bytes: 1_200, at: start.nanoseconds, probe: 0)
        let place = estimator.packets.end - 1
        if state != .inFlight { estimator.packets.settle(place, as: state) }
        if state == .missing { estimator.firstMissing = place }
    }

    @Test func `nothing was repeated at first`() {
        let repeats = RecentRepeats()
        let estimator = Self.estimator()
        for number in 0...UInt16.max {
            let found = repeats.contains(
                SequenceNumber(rawValue: number),
                of: SlotIndex(0),
                within: .max,
                by: estimator,
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
        path.noteRepeat(of: SequenceNumber(rawValue: 7), of: SlotIndex(0), as: nil, at: Self.start)
        let found = isRepeated(path, later: later)
        #expect(found == expected)
    }

    @Test func `repetitions on an earlier path do not count`() {
        var path = path(roundTrip: 300)
        path.noteRepeat(of: SequenceNumber(rawValue: 7), of: SlotIndex(0), as: nil, at: Self.start)
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
