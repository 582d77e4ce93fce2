import RTP
import Testing

@testable import SFU

/// Timestamps reach viewers as the publisher sent them, except for one constant offset.
struct TimestampTests {
    struct Row: Sendable, CustomTestStringConvertible {
        var testDescription: String
        /// Ticks of 90 kHz from one picture to the next, for each of a hundred.
        var step: @Sendable (Int) -> Int64
        var first: UInt32 = 1_000_000
    }

    static let rows = [
        Row(testDescription: "a random start", step: { _ in 3_000 }, first: 0x9abc_def0),
        Row(testDescription: "a wrap", step: { _ in 3_000 }, first: .max - 100_000),
        Row(testDescription: "ten minutes on", step: { $0 == 50 ? 54_000_000 : 3_000 }),
        Row(testDescription: "more than half of all on", step: { $0 == 50 ? 1 << 31 + 9 : 3_000 }),
        Row(testDescription: "a second back", step: { $0 == 50 ? -90_000 : 3_000 }),
        Row(testDescription: "pictures in another order", step: { $0 % 3 == 0 ? -3_000 : 4_500 }),
        Row(testDescription: "time that stands", step: { $0 < 50 ? 0 : 3_000 }),
    ]

    @Test(arguments: rows)
    func `G4 timestamps are forwarded as they were sent`(row: Row) throws {
        var call = try ForwardingTests.call()
        var sent: [UInt32] = []
        var timestamp = row.first
        for number in 0..<100 as Range<UInt16> {
            call.sendVideo(
                sequence: number,
                pictureID: number,
                isKeyframe: number == 0,
                timestamp: timestamp
            )
            sent.append(timestamp)
            timestamp &+= UInt32(truncatingIfNeeded: row.step(Int(number)))
            call.run(milliseconds: 33)
        }
        let received = try call.peers[1].received.map { bytes in
            let packet = try Packet(bytes.span)
            return packet.timestamp
        }
        #expect(received.count == 100)
        #expect(Set(zip(received, sent).map { $0 &- $1 }).count == 1)
    }

    /// Time continues after a switch of the source, wherever the other one's began.
    @Test(arguments: [0, 1_000, 0x7fff_ffff, 0x8000_0001, .max - 3_000] as [UInt32])
    func `G4 time goes on over a switch`(other: UInt32) throws {
        var call = try ForwardingTests.call()
        var received: [UInt32] = []
        for (source, first) in [(0, 77_000 as UInt32), (1, other), (2, 5)] {
            // A sequence of its own, as after an encoder's restart.
            for number in 0..<30 as Range<UInt16> {
                call.sendVideo(
                    sequence: UInt16(20_000 * source) + number,
                    pictureID: number,
                    isKeyframe: number == 0,
                    timestamp: first &+ 3_000 * UInt32(number)
                )
                call.run(milliseconds: 33)
            }
        }
        for bytes in call.peers[1].received { received.append(try Packet(bytes.span).timestamp) }
        #expect(received.count == 90)
        let steps = zip(received, received.dropFirst()).map { Int32(bitPattern: $1 &- $0) }
        #expect(steps.allSatisfy { (450...6_000).contains($0) }, "\(steps)")
    }
}
