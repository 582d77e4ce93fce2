import RTP
import Testing
import WorkerInterface

@testable import SFU

/// Bottleneck rate estimates from the draining of a queue.
struct BottleneckRateTests {
    struct Row: CustomTestStringConvertible, Sendable {
        var testDescription: String
        /// Spacing of packets of 1,200 bytes in milliseconds, as they leave and as they arrive.
        ///
        /// The arrival spacing applies after twenty packets that arrived as they left.
        var sent: Double
        var arrived: Double
        /// Number of packets after these twenty.
        var count = 30
        /// Expected estimate, in bits a second.
        var rate: Double?
    }

    static let rows: [Row] = [
        Row(testDescription: "nothing waits", sent: 8, arrived: 8),
        Row(testDescription: "half of what it was", sent: 8, arrived: 16, rate: 600e3),
        Row(testDescription: "a fifth", sent: 8, arrived: 40, count: 12, rate: 240e3),
        Row(
            testDescription: "for longer than a second",
            sent: 8,
            arrived: 16,
            count: 90,
            rate: 600e3
        ),
        Row(testDescription: "too few to tell", sent: 8, arrived: 60, count: 4),
        Row(testDescription: "few, on a slow path", sent: 8, arrived: 60, count: 6, rate: 160e3),
        Row(testDescription: "as few, on a fast path", sent: 8, arrived: 38.5, count: 6),
    ]

    @Test(arguments: rows)
    func `a draining queue shows the bottleneck rate`(_ row: Row) {
        var pace = BottleneckRate()
        let begin = 20 * row.sent
        for index in 0..<(20 + row.count) {
            let sent = Double(index) * row.sent
            let own = index < 20 ? sent : begin + Double(index - 20) * row.arrived
            pace.add(
                bytes: 1_200,
                sent: Int64(sent * 1e6),
                arrived: 777_000_000_000 + Int64(own * 1e6),
                waited: Int64((own - sent) * 1e6)
            )
        }
        let rate = pace.rate
        #expect((rate == nil) == (row.rate == nil))
        if let rate, let expected = row.rate { #expect(abs(rate / expected - 1) < 0.08) }
    }

    @Test(
        arguments: [
            ("evenly", 1, 30, true), ("two at once", 2, 30, false), ("in rushes", 6, 30, false),
            ("for too short a time", 1, 12, false),
        ]
    )
    func `a rate is sure if packets came evenly for long enough`(
        _ name: String,
        _ together: Int,
        _ count: Int,
        _ isSure: Bool
    ) {
        var pace = BottleneckRate()
        // Packets leave each 8 ms, and arrive so many together at half of that pace.
        for index in 0..<count {
            let arrived = Int64((index / together + 1) * together) * 16_000_000
            let sent = Int64(index) * 8_000_000
            pace.add(bytes: 1_200, sent: sent, arrived: arrived, waited: 40_000_000)
        }
        #expect(pace.rate != nil)
        #expect(pace.isSure == isSure)
    }

    @Test(
        arguments: [
            ([64, 64, 64, 64], true), ([64, 64, 64], false), ([40, 40, 40, 40], false),
            ([200, 5, 5, 5, 5], false), ([5, 5, 5, 5, 200], false),
            ([100, 20, 100, 20, 100], false),
            ([90, 50, 80, 40], true), ([100, 50, 50, 40], false),
        ] as [([Int64], Bool)]
    )
    func `four packets are enough on a slow path, if they came evenly`(
        _ gaps: [Int64],
        _ isSure: Bool
    ) {
        var pace = BottleneckRate()
        var arrived: Int64 = 1_000_000_000
        for gap in [0] + gaps {
            arrived += gap * 1_000_000
            pace.add(bytes: 1_200, sent: 0, arrived: arrived, waited: 80_000_000)
        }
        #expect(pace.isSure == isSure)
    }

    @Test(
        arguments: [
            ("a pause of the path", [(1, 0), (2, 101)], true),
            ("a shorter one", [(1, 0), (2, 100)], false),
            ("nothing was sent for as long", [(1, 0), (301, 300)], false),
            ("little was sent", [(1, 0), (151, 300)], true),
            ("the last one was overtaken", [(1, 0), (3, 90), (2, 40), (4, 110)], false),
            ("one alone", [(1, 500)], false),
        ] as [(String, [(Int64, Int64)], Bool)]
    )
    func `a path has paused if packets came later than they left`(
        _ name: String,
        _ packets: [(sent: Int64, arrived: Int64)],
        _ hasPaused: Bool
    ) {
        var pace = BottleneckRate()
        for (sent, arrived) in packets {
            pace.add(
                bytes: 1_200,
                sent: sent * 1_000_000,
                arrived: 777_000_000_000 + arrived * 1_000_000,
                waited: 80_000_000
            )
        }
        #expect(pace.hasPaused == hasPaused)
    }

    @Test(arguments: [
        (true, 200_000.0, 190_000.0), (true, 350_000, 340_000), (false, 200_000, 340_000),
    ])
    func `overuse lowers the rate to that of a path that has become narrow`(
        _ isSure: Bool,
        _ bottleneck: Double,
        left: Double
    ) {
        var control = RateControl(900_000)
        let input = RateControl.Input(
            usage: .over,
            acknowledged: 400_000,
            bottleneckRate: bottleneck,
            isBottleneckSure: isSure,
            roundTrip: 100_000_000,
            waiting: 150_000_000,
            rule: .delay,
            isRateOfProbe: false,
            isQueueOfProbe: false,
            fair: 0,
            floor: 0,
            least: 0,
            isApplicationLimited: false,
            bounds: 10_000...5_000_000
        )
        _ = control.update(input, at: 1_000_000_000)
        #expect(abs(control.estimate - left) < 1)
    }
}
