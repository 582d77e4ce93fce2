import Testing
import WorkerInterface

struct HistogramTests {
    struct Case: CustomTestStringConvertible, Sendable {
        var testDescription: String
        var sample: Double
        /// `nil`: it is not counted.
        var bucket: Int?
    }

    static let cases = [
        Case(testDescription: "nothing", sample: 0, bucket: 0),
        Case(testDescription: "less than nothing", sample: -3, bucket: 0),
        Case(testDescription: "a bound belongs to what is below it", sample: 0.005, bucket: 1),
        Case(testDescription: "more than a bound", sample: 0.0051, bucket: 2),
        Case(testDescription: "the last bound", sample: 0.5, bucket: 11),
        Case(testDescription: "more than any bound", sample: 0.51, bucket: 12),
        Case(testDescription: "no number", sample: .nan, bucket: nil),
        Case(testDescription: "infinity", sample: .infinity, bucket: nil),
    ]

    @Test(arguments: cases)
    func `a sample falls into one bucket`(_ entry: Case) {
        var histogram = Histogram(.loss)
        histogram.add(entry.sample)
        let filled = histogram.counts.enumerated().filter { $1 > 0 }.map(\.offset)
        #expect(filled == (entry.bucket.map { [$0] } ?? []))
        #expect(histogram.count == (entry.bucket == nil ? 0 : 1))
        #expect(histogram.sum == (entry.bucket == nil ? 0 : max(entry.sample, 0)))
    }

    @Test(arguments: [Histogram.Scale.loss, .jitter, .roundTrip, .connecting])
    func `bounds ascend, and a bucket is left for what is above them`(_ scale: Histogram.Scale) {
        let bounds = scale.bounds
        #expect(zip(bounds, bounds.dropFirst()).allSatisfy { $0 < $1 })
        #expect(Histogram(scale).counts.count == bounds.count + 1)
    }

    @Test
    func `histograms add up, and differ by any sample`() {
        var first = Histogram(.jitter)
        first.add(0.002)
        var second = Histogram(.jitter)
        second.add(3)
        #expect(first != second && first == first && Histogram(.jitter) != Histogram(.loss))
        var sum = first
        sum += second
        #expect(sum.count == 2 && sum.counts[1] == 1 && sum.counts[12] == 1)
        #expect(sum.sum == 3.002)
        #expect(Set([first, second, sum, first]).count == 3)
    }
}
