import RTP
import Testing

@testable import SFU

/// What a sudden queue says of a path.
struct SurgeTests {
    struct Row: CustomTestStringConvertible, Sendable {
        var testDescription: String
        /// Milliseconds between two packets of 1,200 bytes as they leave, and as they come once
        /// twenty have come as they left.
        var sent: Double
        var arrived: Double
        /// Milliseconds in which nothing comes then, and what had to wait comes all at once.
        var pause = 0.0
        /// Packets after these twenty.
        var count = 30
        /// Bits a second.
        var rate: Double?
    }

    static let rows: [Row] = [
        Row(testDescription: "nothing waits", sent: 8, arrived: 8),
        Row(testDescription: "half of what it was", sent: 8, arrived: 16, rate: 0.95 * 600e3),
        Row(testDescription: "a fifth", sent: 8, arrived: 40, count: 10, rate: 0.95 * 240e3),
        Row(testDescription: "a queue that grows slowly", sent: 8, arrived: 9, count: 200),
        Row(testDescription: "one that has been there for long", sent: 8, arrived: 16, count: 90),
        Row(testDescription: "a pause", sent: 8, arrived: 8, pause: 150),
        Row(testDescription: "too few to tell", sent: 8, arrived: 60, count: 6),
    ]

    @Test(arguments: rows)
    func `what comes out of a sudden queue comes at the path's own pace`(_ row: Row) {
        var surge = Surge()
        let begin = 20 * row.sent
        var last = 0.0
        for index in 0..<(20 + row.count) {
            let sent = Double(index) * row.sent
            let own = index < 20 ? sent : begin + Double(index - 20) * row.arrived
            last = max(last, index < 20 ? own : max(own, begin + row.pause))
            surge.add(
                bytes: 1_200,
                sent: Int64(sent * 1e6),
                arrived: 777_000_000_000 + Int64(last * 1e6),
                waited: Int64((last - sent) * 1e6)
            )
        }
        let rate = surge.rate
        #expect((rate == nil) == (row.rate == nil))
        if let rate, let expected = row.rate { #expect(abs(rate / expected - 1) < 0.08) }
    }
}
