import Testing

@testable import SFU
@testable import WorkerInterface

/// Usage that the rate control is told of a path on which packets suddenly wait.
struct JudgedUsageTests {
    private static let millisecond: Int64 = 1_000_000
    private static let bounds = 10_000.0...10_000_000

    /// A path by the waits of packets that leave each 10 ms.
    struct Row: CustomTestStringConvertible, Sendable {
        var testDescription: String
        /// Wait of a packet by the time at which it is sent, both in milliseconds; the first
        /// trouble is at 2,000.
        var waits: @Sendable (Int64) -> Int64
        /// Milliseconds after the first trouble in which overuse is reported first; `nil` for
        /// never.
        var overuse: ClosedRange<Int64>?
    }

    /// Returns the wait of a packet of a stall from `begin` to `end`, whose queue then drains: in
    /// each millisecond what was sent in `speed` milliseconds.
    private static func stall(_ sent: Int64, _ begin: Int64, _ end: Int64, _ speed: Double) -> Int64
    {
        guard sent >= begin else { return 0 }
        let arrived = Double(end) + Double(sent - begin) / speed
        return max(0, Int64(arrived) - sent)
    }

    static let rows = [
        Row(testDescription: "nothing happens", waits: { _ in 0 }, overuse: nil),
        Row(
            testDescription: "it stalls, and drains fast",
            waits: { stall($0, 2_000, 2_400, 6) },
            overuse: nil
        ),
        Row(
            testDescription: "it stalls, and drains slowly",
            waits: { stall($0, 2_000, 2_300, 1.4) },
            overuse: nil
        ),
        Row(
            testDescription: "it stalls twice",
            waits: { $0 < 3_500 ? stall($0, 2_000, 2_400, 6) : stall($0, 4_000, 4_400, 6) },
            overuse: nil
        ),
        Row(
            testDescription: "two packets come each 300 ms from now on",
            waits: { $0 < 2_000 ? 0 : ($0 - 2_000) / 20 * 300 + 300 - ($0 - 2_000) },
            overuse: 900...1_400
        ),
        Row(
            testDescription: "it gets slow without a pause",
            waits: { $0 < 2_000 ? 0 : ($0 - 2_000) * 3 },
            overuse: 50...300
        ),
        Row(
            testDescription: "two packets come each 60 ms, which is no pause",
            waits: { $0 < 2_000 ? 0 : ($0 - 2_000) / 20 * 60 + 60 - ($0 - 2_000) },
            overuse: 50...700
        ),
        Row(
            testDescription: "it pauses, and then carries little, but evenly",
            waits: { $0 < 2_000 ? 0 : 110 + ($0 - 2_000) * 3 },
            overuse: 250...450
        ),
        Row(
            testDescription: "it stalls with a queue that was there before",
            waits: { $0 < 1_000 ? 0 : max(60, stall($0, 2_000, 2_400, 1.02)) },
            overuse: 100...700
        ),
    ]

    @Test(arguments: rows)
    func `a stall is no overuse, and a path that carries less is`(_ row: Row) {
        var detectors = Detectors()
        var sent: Int64 = 0
        var first: Int64?
        var arrivals: [(sent: Int64, arrived: Int64)] = []
        for now in stride(from: 0 as Int64, to: 5_500, by: 50) {
            while sent < now {
                let arrived = max(sent + 20 + row.waits(sent), arrivals.last?.arrived ?? 0)
                arrivals.append((sent, arrived))
                sent += 10
            }
            let due = arrivals.prefix { $0.arrived <= now }
            arrivals.removeFirst(due.count)
            guard !due.isEmpty else { continue }
            for packet in due {
                var entry = SentPackets.Entry()
                entry.time = packet.sent * Self.millisecond
                entry.bytes = 1_000
                entry.state = .arrived
                detectors.noteArrival(entry, packet.arrived * Self.millisecond)
            }
            let input = detectors.conclude(
                roundTrip: 40 * Self.millisecond,
                isApplicationLimited: true,
                sinceProbe: .max,
                least: 0,
                bounds: Self.bounds,
                at: now * Self.millisecond
            )
            if input.usage == .over, first == nil, now >= 2_000 { first = now - 2_000 }
        }
        #expect((first != nil) == (row.overuse != nil), "\(String(describing: first))")
        if let first, let overuse = row.overuse { #expect(overuse.contains(first), "\(first)") }
    }
}
