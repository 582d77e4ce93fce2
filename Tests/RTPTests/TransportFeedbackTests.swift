import TestSupport
import Testing

@testable import RTP

/// A complete feedback message, for comparison.
private struct Message: Equatable {
    var base: UInt16
    var count: Int
    var reference: Int32
    var feedbackCount: UInt8
    /// Arrival times in nanoseconds; `nil` for a lost packet.
    var arrivals: [Int64?]

    init?(_ bytes: [UInt8]) throws {
        var blocks = RTCPBlocks(bytes.span)
        guard let block = blocks.next() else { return nil }
        var feedback = try TransportFeedback(block)
        base = feedback.baseSequence.rawValue
        count = feedback.statusCount
        reference = feedback.referenceTime
        feedbackCount = feedback.feedbackCount
        arrivals = []
        while let (number, arrival) = feedback.next() {
            let expected = base &+ UInt16(truncatingIfNeeded: arrivals.count)
            #expect(number.rawValue == expected)
            arrivals.append(arrival)
        }
        try expectArrivedAlone(bytes)
    }

    /// Checks that iterating over arrivals alone gives the same as the whole iteration.
    private func expectArrivedAlone(_ bytes: [UInt8]) throws {
        var blocks = RTCPBlocks(bytes.span)
        guard let block = blocks.next() else { return }
        var feedback = try TransportFeedback(block)
        var arrived = [Int64?](repeating: nil, count: count)
        while let (number, arrival) = feedback.nextArrived() {
            arrived[Int(number.rawValue &- base)] = arrival
        }
        #expect(arrived == arrivals)
    }
}

/// Transport-wide feedback tests (draft-holmer-rmcat-transport-wide-cc-extensions-01 §3.1).
@Suite struct TransportFeedbackTests {
    static let header = "00000001 00000002 fffe 0018 000002 07"

    @Test func `reads runs and vectors`() throws {
        // Two small, three lost, fourteen at one bit, and five of seven at two bits.
        let bytes = hex(
            "afcd0008" + Self.header + "2002 0003 a800 d800" + "04 08 01 02 03 fffc 01"
        )
        let message = try #require(try Message(bytes))
        let lost = [Int64?](repeating: nil, count: 11)
        var expected: [Int64?] = [129_000_000, 131_000_000, nil, nil, nil]
        expected += [131_250_000, nil, 131_750_000] + lost
        expected += [132_500_000, 131_500_000, nil, nil, nil]
        #expect(message.base == 0xfffe)
        #expect(message.count == 24)
        #expect(message.reference == 2)
        #expect(message.feedbackCount == 7)
        #expect(message.arrivals == expected)
    }

    @Test func `reads a reference time before the origin`() throws {
        let message = try #require(
            try Message(hex("8fcd0005 00000001 00000002 0000 0001 ffffff 00 2001 04 00"))
        )
        #expect(message.reference == -1)
        #expect(message.arrivals == [-63_000_000])
    }

    struct Row: CustomTestStringConvertible, Sendable {
        var testDescription: String
        var bytes: [UInt8]
        var error: RTCPError
    }

    static let refused = [
        Row(
            testDescription: "the reserved symbol",
            bytes: hex("8fcd0005" + header + "dc00 0000"),
            error: .malformed
        ),
        Row(
            testDescription: "a run of the reserved symbol",
            bytes: hex("8fcd0005" + header + "6018 0000"),
            error: .malformed
        ),
        Row(
            testDescription: "a run of nothing",
            bytes: hex("8fcd0005" + header + "0000 0018"),
            error: .malformed
        ),
        Row(
            testDescription: "no statuses",
            bytes: hex("8fcd0005 00000001 00000002 fffe 0000 000002 07 0000 0000"),
            error: .malformed
        ),
        Row(
            testDescription: "too few chunks",
            bytes: hex("8fcd0005" + header + "0003 0003"),
            error: .truncated
        ),
        Row(
            testDescription: "too few deltas",
            bytes: hex("8fcd0005" + header + "2018 0000"),
            error: .truncated
        ),
        Row(testDescription: "no chunks", bytes: hex("8fcd0004" + header), error: .truncated),
    ]

    @Test(arguments: refused)
    func `refuses`(_ row: Row) {
        let caught = error(in: row.bytes) { block throws(RTCPError) in
            _ = try TransportFeedback(block)
        }
        #expect(caught == row.error)
    }

    @Test func `writes a message bit for bit`() {
        let arrivals: [Int64] = [129_000_000, -1, 131_000_000, 231_000_000, -1, 230_750_000]
        var count = 0
        // Another packet precedes it, as in a compound.
        let bytes = encoded { output in
            output.append(0xee)
            count = TransportFeedbackBuilder.encode(
                sender: SSRC(rawValue: 1),
                media: SSRC(rawValue: 2),
                feedbackCount: 7,
                base: SequenceNumber(rawValue: 0xfffe),
                arrivals: arrivals.span,
                into: &output
            )
        }
        // Two-bit vector: small, lost, small, large (400 ticks), lost, large (-1 tick).
        let expected = hex(
            "afcd0006 00000001 00000002 fffe 0006 000002 07" + "d188" + "04 08 0190 ffff"
        )
        #expect(count == 6)
        #expect(bytes == [0xee, 0x8f] + expected.dropFirst())
    }

    @Test(arguments: 1...20 as ClosedRange<UInt64>)
    func `any list of arrivals round-trips`(seed: UInt64) throws {
        var generator = SeededRandom(seed: seed)
        for _ in 0..<20 {
            let lossPercent = [0, 1, 30, 99].randomElement(using: &generator) ?? 0
            let jumps: [Int64] = [100_000, 3_000_000, 80_000_000, 9_000_000_000]
            let jump =
                jumps
                .randomElement(using: &generator) ?? 0
            var clock = Int64.random(in: 0...1 << 40, using: &generator)
            let arrivals = (0..<Int.random(in: 1...2000, using: &generator)).map { _ in
                clock = max(0, clock + Int64.random(in: -(jump / 3)...jump, using: &generator))
                return Int.random(in: 0..<100, using: &generator) < lossPercent ? -1 : clock
            }
            try roundTrip(arrivals, capacity: Int.random(in: 28...1500, using: &generator))
        }
    }

    /// Sends `arrivals` in as many messages as needed and compares to within a tick.
    private func roundTrip(_ arrivals: [Int64], capacity: Int) throws {
        var sent = 0
        while sent < arrivals.count, arrivals[sent...].contains(where: { $0 >= 0 }) {
            let rest = Array(arrivals[sent...])
            var count = 0
            let bytes = encoded(capacity: capacity) { output in
                count = TransportFeedbackBuilder.encode(
                    sender: SSRC(rawValue: 1),
                    media: SSRC(rawValue: 2),
                    feedbackCount: 9,
                    base: SequenceNumber(rawValue: UInt16(truncatingIfNeeded: sent)),
                    arrivals: rest.span,
                    into: &output
                )
            }
            try #require(count > 0)
            let message = try #require(try Message(bytes))
            let first = try #require(rest.first { $0 >= 0 })
            let reference = first / 64_000_000
            #expect(Int64(message.reference) & 0xff_ffff == reference & 0xff_ffff)
            let origin = (reference - Int64(message.reference)) * 64_000_000
            let read = message.arrivals.map { $0.map { $0 + origin } }
            let expected = rest.prefix(count).map { $0 < 0 ? nil : $0 / 250_000 * 250_000 }
            #expect(read == expected)
            sent += count
        }
    }

    @Test func `long losses take few bytes and end at 65,535`() throws {
        var arrivals = [Int64](repeating: -1, count: 70_000)
        arrivals[0] = 0
        var count = 0
        let bytes = encoded(capacity: 20_000) { output in
            count = TransportFeedbackBuilder.encode(
                sender: SSRC(rawValue: 1),
                media: SSRC(rawValue: 2),
                feedbackCount: 0,
                base: SequenceNumber(rawValue: 0),
                arrivals: arrivals.span,
                into: &output
            )
        }
        #expect(count == 65_535)
        #expect(bytes.count < 64)
        #expect(try Message(bytes)?.arrivals.count == 65_535)
    }

    @Test func `writes nothing without arrivals or space`() {
        for (arrivals, capacity) in [([-1, -1], 100), ([], 100), ([5], 20), ([5], 23)] {
            let arrivals = arrivals.map { Int64($0) }
            var count = 1
            let bytes = encoded(capacity: capacity) { output in
                count = TransportFeedbackBuilder.encode(
                    sender: SSRC(rawValue: 1),
                    media: SSRC(rawValue: 2),
                    feedbackCount: 0,
                    base: SequenceNumber(rawValue: 0),
                    arrivals: arrivals.span,
                    into: &output
                )
            }
            #expect(count == 0)
            #expect(bytes.isEmpty)
        }
    }
}
