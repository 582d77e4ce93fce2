import RTP
import Testing

@testable import sfu_bench

@Suite struct NumberWindowTests {
    struct Row: CustomTestStringConvertible, Sendable {
        var testDescription: String
        var numbers: [UInt16]
        /// Expected counts of missing, late and duplicate numbers.
        var gaps = 0
        var late = 0
        var duplicates = 0
    }

    static let rows = [
        Row(testDescription: "in order", numbers: [5, 6, 7]),
        Row(testDescription: "over the wrap", numbers: [65_534, 65_535, 0, 1]),
        Row(testDescription: "one missing", numbers: [1, 2, 4], gaps: 1),
        Row(testDescription: "one late", numbers: [1, 3, 2, 4], late: 1),
        Row(testDescription: "late over the wrap", numbers: [65_535, 1, 0], late: 1),
        Row(testDescription: "twice", numbers: [1, 2, 2, 1], duplicates: 2),
        Row(testDescription: "late, then twice", numbers: [1, 3, 2, 2], late: 1, duplicates: 1),
        Row(testDescription: "a long gap", numbers: [1, 2_001], gaps: 1_999),
        Row(
            testDescription: "too late to tell",
            numbers: [1, 2_001, 2],
            gaps: 1_999,
            duplicates: 1
        ),
    ]

    @Test(arguments: rows)
    func `counts what is missing, late and double`(_ row: Row) {
        var window = ReceivedWindow()
        var (gaps, late, duplicates) = (0, 0, 0)
        for number in row.numbers {
            switch window.note(window.extended(SequenceNumber(rawValue: number))) {
            case .new(let skipped): gaps += Int(skipped)
            case .late:
                gaps -= 1
                late += 1
            case .duplicate: duplicates += 1
            }
        }
        #expect(gaps == row.gaps)
        #expect(late == row.late)
        #expect(duplicates == row.duplicates)
    }
}

@Suite struct LatencyHistogramTests {
    @Test(arguments: [1, 15, 16, 1_000, 123_456, 5_000_000, 3_000_000_000] as [Int64])
    func `one time comes back a sixteenth too long at most`(_ nanoseconds: Int64) {
        var histogram = LatencyHistogram()
        for _ in 0..<3 { histogram.note(nanoseconds: nanoseconds) }
        histogram.note(nanoseconds: 4_000_000_000)
        let found = histogram.milliseconds(0.5) * 1e6
        #expect(found >= Double(nanoseconds) && found <= Double(nanoseconds) * 17 / 16 + 1)
    }

    @Test func `shares are counted from the shortest`() {
        var histogram = LatencyHistogram()
        for step in 1...1_000 { histogram.note(nanoseconds: Int64(step) * 1_000_000) }
        #expect(abs(histogram.milliseconds(0.5) - 500) < 32)
        #expect(abs(histogram.milliseconds(0.99) - 990) < 64)
        #expect(histogram.milliseconds(1) == 1_000)
        #expect(LatencyHistogram().milliseconds(0.99) == 0)
    }
}

@Suite struct PacketizerTests {
    @Test(arguments: [1, 1_134, 1_135, 6_250, 62_934])
    func `a frame is cut about evenly, the later packets a byte longer`(_ length: Int) {
        let cut = Packetizer.cut(length)
        let longest = cut.longer > 0 ? cut.share + 1 : cut.share
        #expect(cut.count * cut.share + cut.longer == length)
        #expect(cut.longer < cut.count)
        #expect(longest + Packetizer.descriptorLength <= OfferParameters.videoPayload)
    }
}
