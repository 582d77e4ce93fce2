import TestSupport
import Testing

@testable import RTP

@Suite struct NumbersTests {
    @Test(
        arguments: [
            (1, 0, 1), (0, 1, -1), (0, 65_535, 1), (65_535, 0, -1), (32_767, 0, 32_767),
            (32_768, 0, -32_768),
        ] as [(UInt16, UInt16, Int)]
    )
    func `sequence number distance takes the shorter way`(to: UInt16, from: UInt16, distance: Int) {
        let (to, from) = (SequenceNumber(rawValue: to), SequenceNumber(rawValue: from))
        #expect(to.distance(from: from) == distance)
        #expect(from.advanced(by: distance) == to)
    }

    @Test func `instants are nanoseconds`() {
        let start = Instant(nanoseconds: 5)
        let later = start.advanced(milliseconds: 20)
        #expect(later.nanoseconds(since: start) == 20_000_000)
        #expect(later.milliseconds(since: start) == 20)
        #expect(start.milliseconds(since: later) == -20)
        #expect(start < later)
    }

    /// RFC 3550 §4 and RFC 5905 §6: 2,208,988,800 s lie between 1900 and 1970.
    @Test(
        arguments: [
            (0, 0x83aa_7e80_0000_0000), (500_000_000, 0x83aa_7e80_8000_0000),
            (-500_000_000, 0x83aa_7e7f_8000_0000),
        ] as [(Int64, UInt64)]
    )
    func `NTP time counts from 1900`(unixNanoseconds: Int64, expected: UInt64) {
        #expect(NTPTime(unixNanoseconds: unixNanoseconds).rawValue == expected)
    }

    @Test(arguments: [1, 2, 3] as [UInt64])
    func `NTP times differ by nanoseconds`(seed: UInt64) {
        var generator = SeededRandom(seed: seed)
        for _ in 0..<1000 {
            let first = Int64.random(in: 0...2_000_000_000_000_000_000, using: &generator)
            let step = Int64.random(in: -1_000_000_000_000...1_000_000_000_000, using: &generator)
            let (start, end) = (
                NTPTime(unixNanoseconds: first), NTPTime(unixNanoseconds: first + step)
            )
            #expect(abs(end.nanoseconds(since: start) - step) <= 1)
        }
    }

    @Test func `extension ids round-trip`() {
        var map = ExtensionMap()
        map[.mid] = 4
        map[.dependencyDescriptor] = 12
        #expect(map.kind(of: 4) == .mid)
        #expect(map.kind(of: 12) == .dependencyDescriptor)
        #expect(map.kind(of: 0) == nil)
        #expect(map.kind(of: 5) == nil)
        #expect(map[.rid] == 0)
        #expect(ExtensionKind.allCases.count == ExtensionKind.count)
    }
}
