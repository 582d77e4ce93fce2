import Testing
import WorkerInterface

struct ForwardingTimesTests {
    struct Case: CustomTestStringConvertible, Sendable {
        var testDescription: String
        /// Time in nanoseconds.
        var time: Int64
        var bucket: Int
    }

    static let cases = [
        Case(testDescription: "none", time: 0, bucket: 0),
        Case(testDescription: "before the start", time: -5, bucket: 0),
        Case(testDescription: "a bound belongs to what is below it", time: 10_000, bucket: 0),
        Case(testDescription: "a nanosecond past a bound", time: 10_001, bucket: 1),
        Case(testDescription: "a millisecond", time: 1_000_000, bucket: 10),
        Case(testDescription: "a second", time: 1_000_000_000, bucket: 25),
        Case(testDescription: "longer than any bound", time: 1_000_000_001, bucket: 26),
        Case(testDescription: "the longest time there is", time: .max, bucket: 26),
    ]

    @Test(arguments: cases)
    func `a time falls into one bucket`(_ entry: Case) {
        var times = ForwardingTimes()
        times.note(nanoseconds: entry.time)
        #expect(times.counts.enumerated().filter { $1 > 0 }.map(\.offset) == [entry.bucket])
        #expect(times.count == 1)
        #expect(times.totalNanoseconds == UInt64(max(0, entry.time)))
    }

    @Test
    func `bounds grow evenly from 10 µs to 1 s`() {
        let bounds = ForwardingTimes.bounds
        #expect(bounds.first == 10_000 && bounds.last == 1_000_000_000)
        for (low, high) in zip(bounds, bounds.dropFirst()) {
            #expect((1.5...1.7).contains(Double(high) / Double(low)))
        }
    }

    @Test
    func `quantiles lie where the times are`() throws {
        var times = ForwardingTimes()
        #expect(times.quantile(0.5) == nil)
        for _ in 0..<990 { times.note(nanoseconds: 20_000) }
        for _ in 0..<10 { times.note(nanoseconds: 5_000_000) }
        let half = try #require(times.quantile(0.5))
        #expect((16_000...25_000).contains(half))
        let most = try #require(times.quantile(0.99))
        #expect(most <= 25_000)
        let rest = try #require(times.quantile(0.999))
        #expect((4_000_000...6_300_000).contains(rest))
        var other = ForwardingTimes()
        other.note(nanoseconds: .max)
        other += times
        #expect(other.count == 1_001)
        #expect(other.quantile(1) == 1_000_000_000)
    }
}
