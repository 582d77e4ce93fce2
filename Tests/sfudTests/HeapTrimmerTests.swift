import RTP
import Testing

@testable import sfud

@Suite struct HeapTrimmerTests {
    @Test func `nothing is trimmed where nobody comes or goes`() {
        var trimmer = HeapTrimmer()
        #expect(!trimmer.isDue(changes: 0, at: Self.time(0)))
        #expect(trimmer.deadline == nil)
    }

    @Test func `it waits until things are quiet, and trims once`() {
        var trimmer = HeapTrimmer()
        #expect(!trimmer.isDue(changes: 1, at: Self.time(0)))
        #expect(!trimmer.isDue(changes: 9, at: Self.time(1_000)))
        #expect(!trimmer.isDue(changes: 9, at: Self.time(2_500)))
        #expect(trimmer.deadline == Self.time(3_000))
        #expect(trimmer.isDue(changes: 9, at: Self.time(3_000)))
        #expect(!trimmer.isDue(changes: 9, at: Self.time(100_000)))
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
