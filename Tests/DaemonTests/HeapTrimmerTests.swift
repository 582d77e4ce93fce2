import RTP
import Testing

@testable import Daemon

@Suite struct HeapTrimmerTests {
    @Test func `nothing is trimmed where nobody comes or goes`() {
        var trimmer = HeapTrimmer()
        let isDue = trimmer.isDue(changes: 0, at: Self.time(0))
        #expect(!isDue)
        #expect(trimmer.deadline == nil)
    }

    /// Number of changes and time in milliseconds; whether trimming is due then.
    static let story: [(changes: Int, time: Int64, isDue: Bool)] = [
        (1, 0, false), (9, 1_000, false), (9, 2_500, false), (9, 3_000, true),
        (9, 100_000, false),
    ]

    @Test func `it waits until things are quiet, and trims once`() {
        var trimmer = HeapTrimmer()
        for step in Self.story {
            if step.isDue { #expect(trimmer.deadline == Self.time(step.time)) }
            let isDue = trimmer.isDue(changes: step.changes, at: Self.time(step.time))
            #expect(isDue == step.isDue, "\(step)")
        }
        #expect(trimmer.deadline == nil)
    }

    @Test func `where things are never quiet it trims once a minute`() {
        var trimmer = HeapTrimmer()
        var trims = 0
        for second in 0..<300 {
            let now = Self.time(Int64(second) * 1_000)
            if trimmer.isDue(changes: second + 1, at: now) { trims += 1 }
        }
        #expect(trims == 4)
    }

    private static func time(_ milliseconds: Int64) -> Instant {
        Instant(nanoseconds: 0).advanced(milliseconds: milliseconds)
    }
}
