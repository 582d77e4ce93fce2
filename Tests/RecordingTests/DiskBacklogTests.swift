import RTP
import Testing

@testable import Recording

/// Bytes that wait for the disk, in virtual time.
struct DiskBacklogTests {
    struct Row: CustomTestStringConvertible, Sendable {
        var testDescription: String
        /// Bytes added, or removed if negative, with their times in milliseconds.
        var steps: [(bytes: Int, at: Int64)]
        /// First millisecond at which the disk is too slow; `nil` if it never is.
        var tooLate: Int64?
    }

    static let rows = [
        Row(testDescription: "as much as may wait", steps: [(100, 0)], tooLate: nil),
        Row(
            testDescription: "a burst that is written at the next look",
            steps: [(1_000, 10), (-900, 110)],
            tooLate: nil
        ),
        Row(
            testDescription: "bursts one after the other",
            steps: [(300, 0), (-300, 400), (300, 450), (-300, 900), (300, 950), (-300, 1_400)],
            tooLate: nil
        ),
        Row(testDescription: "a burst that stays", steps: [(101, 10)], tooLate: 510),
        Row(
            testDescription: "a disk that never takes all of it",
            steps: [(200, 10), (-90, 200), (100, 300), (-90, 400), (100, 500)],
            tooLate: 510
        ),
    ]

    @Test(arguments: rows)
    func `the disk is too slow if more than the limit waits for half a second`(_ row: Row) {
        var backlog = DiskBacklog()
        var steps = row.steps[...]
        var tooLate: Int64?
        for millisecond in 0..<2_000 as Range<Int64> {
            let now = Instant(nanoseconds: millisecond * 1_000_000)
            while let step = steps.first, step.at == millisecond {
                steps.removeFirst()
                if step.bytes < 0 {
                    backlog.remove(-step.bytes, limit: 100)
                } else {
                    backlog.add(step.bytes, limit: 100, at: now)
                }
            }
            if tooLate == nil, backlog.isOverdue(at: now) { tooLate = millisecond }
        }
        #expect(tooLate == row.tooLate)
        #expect(backlog.bytes == row.steps.map { $0.bytes }.reduce(0, +))
    }
}
