import RTP
import TestSupport
import Testing
import WorkerInterface

@testable import Recording
@testable import SFU

struct ReorderTests {
    struct Row: CustomTestStringConvertible, Sendable {
        var testDescription: String
        /// Sequence numbers and arrival times, in milliseconds.
        var arrivals: [(number: Int64, at: Int64)]
        /// Output by the end of a second; `!` precedes a packet that follows a loss.
        var output: [String]
    }

    static let rows = [
        Row(
            testDescription: "in order",
            arrivals: [(1, 0), (2, 10), (3, 20)],
            output: ["1 at 0", "2 at 10", "3 at 20"]
        ),
        Row(
            testDescription: "a retransmission closes the gap",
            arrivals: [(1, 0), (3, 10), (4, 20), (2, 120)],
            output: ["1 at 0", "2 at 120", "3 at 120", "4 at 120"]
        ),
        Row(
            testDescription: "a gap is given up after half a second",
            arrivals: [(1, 0), (4, 10), (5, 100)],
            output: ["1 at 0", "!4 at 510", "5 at 510"]
        ),
        Row(
            testDescription: "what comes too late is left out",
            arrivals: [(1, 0), (3, 10), (2, 600), (4, 610)],
            output: ["1 at 0", "!3 at 510", "4 at 610"]
        ),
        Row(
            testDescription: "duplicates are left out",
            arrivals: [(1, 0), (1, 5), (3, 10), (3, 15), (2, 20)],
            output: ["1 at 0", "2 at 20", "3 at 20"]
        ),
        Row(
            testDescription: "two gaps, the second younger",
            arrivals: [(1, 0), (3, 0), (5, 300)],
            output: ["1 at 0", "!3 at 500", "!5 at 800"]
        ),
    ]

    @Test(arguments: rows)
    func `E-3 packets leave in order`(_ row: Row) {
        var buffer = ReorderBuffer()
        var output: [String] = []
        var arrivals = row.arrivals[...]
        for millisecond in 0..<1_000 as Range<Int64> {
            let now = Instant(nanoseconds: millisecond * 1_000_000)
            while let next = arrivals.first, next.at == millisecond {
                arrivals.removeFirst()
                buffer.insert(packet(next.number, at: now))
            }
            while let next = buffer.next(at: now) {
                let mark = next.followsLoss ? "!" : ""
                output.append("\(mark)\(next.packet.number) at \(millisecond)")
            }
        }
        #expect(output == row.output)
        #expect(buffer.isEmpty)
    }

    @Test func `a gap is given up when too much waits behind it`() {
        var buffer = ReorderBuffer()
        let now = Instant(nanoseconds: 0)
        buffer.insert(packet(1, at: now))
        #expect(buffer.next(at: now)?.packet.number == 1)
        for number in 3...Int64(ReorderBuffer.capacity + 2) {
            buffer.insert(packet(number, at: now))
            #expect(buffer.next(at: now)?.packet.number == nil)
        }
        buffer.insert(packet(Int64(ReorderBuffer.capacity + 3), at: now))
        #expect(buffer.next(at: now)?.followsLoss == true)
    }

    /// Model of a buffer: a list that is searched from its beginning each time.
    private struct Model {
        var waiting: [(number: Int64, arrival: Instant)] = []
        var due: Int64?

        mutating func insert(_ packet: TapPacket) {
            if let due, packet.number < due { return }
            guard !waiting.contains(where: { $0.number == packet.number }) else { return }
            waiting.append((packet.number, packet.arrival))
        }

        var deadline: Instant? { waiting.map { $0.arrival }.min()?.advanced(milliseconds: 500) }

        /// Returns the next number; `!` precedes one that follows a loss.
        mutating func next(at now: Instant) -> String? {
            let index = waiting.indices.min { waiting[$0].number < waiting[$1].number }
            guard let index else { return nil }
            let number = waiting[index].number
            let isDue = due == nil || number == due
            let isFull = waiting.count > ReorderBuffer.capacity
            guard isDue || isFull || deadline.map({ $0 <= now }) == true else { return nil }
            waiting.remove(at: index)
            due = number + 1
            return isDue ? "\(number)" : "!\(number)"
        }
    }

    static let orders: [(name: String, milliseconds: ClosedRange<Int64>, most: ClosedRange<Int>)] =
        [
            ("kept full", 0...0, ReorderBuffer.capacity...ReorderBuffer.capacity),
            ("given up by time", 0...2, 200...1_000),
        ]

    @Test(arguments: orders)
    func `in random order a buffer does what a plain list does`(
        name: String,
        milliseconds: ClosedRange<Int64>,
        most: ClosedRange<Int>
    ) {
        var random = SeededRandom(seed: 7)
        var buffer = ReorderBuffer()
        var model = Model()
        var now = Instant(nanoseconds: 1_000_000_000)
        var fullest = 0
        for step in 0..<4_000 as Range<Int64> {
            now = now.advanced(milliseconds: random.pick(milliseconds))
            // Of two numbers about one comes, some twice; arrivals need not be in order.
            let arrival = now.advanced(milliseconds: random.pick(-20...0))
            let packet = packet(2 * step + random.pick(0...1_000), at: arrival)
            buffer.insert(packet)
            model.insert(packet)
            var output: [String] = []
            while let next = buffer.next(at: now) {
                output.append("\(next.followsLoss ? "!" : "")\(next.packet.number)")
            }
            var expected: [String] = []
            while let next = model.next(at: now) { expected.append(next) }
            let isSame = output == expected && buffer.deadline == model.deadline
            guard isSame else {
                Issue.record("step \(step): \(output) instead of \(expected)")
                return
            }
            fullest = max(fullest, model.waiting.count)
        }
        #expect(most.contains(fullest), "\(fullest)")
        #expect(buffer.isEmpty == model.waiting.isEmpty)
    }

    private func packet(_ number: Int64, at now: Instant) -> TapPacket {
        TapPacket(
            publication: Packets.publication,
            codec: .vp8,
            number: number,
            timestamp: 0,
            arrival: now,
            payload: [1]
        )
    }
}
