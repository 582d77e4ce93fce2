import RTP
import Testing
import WorkerInterface

@testable import SFU

/// Endless requests stay within budgets, and reports tell the truth.
struct RequestStormTests {
    @Test func `a NACK storm costs a quarter of the media and one burst at most`() throws {
        var call = try ForwardingTests.call()
        for step in 0..<400 as Range<UInt16> {
            call.sendVideo(sequence: step, pictureID: step, isKeyframe: step == 0)
            let last = call.numbers(at: 1).last ?? 0
            for back in 0..<10 as Range<UInt16> { call.nack(last &- back, from: 1, ssrc: 0xaaaa) }
            // The highest rate at which RTCP is accepted.
            call.run(milliseconds: 10)
        }
        let statistics = call.statistics()
        let slot = statistics.slots.first { $0.id.index == 0 }
        #expect(statistics.rtxOut <= 256 + 100)
        #expect(statistics.rtxOut > 200)
        #expect(slot?.nacksReceived == 4_000)
        #expect(slot?.retransmissionsSent == statistics.rtxOut)
        // A viewer's requests never reach the publisher.
        #expect(call.nacks(at: 0).isEmpty)
    }

    /// Numbers relative to the newest one sent, and the SSRC that is named.
    static let requests: [(name: String, step: Int, ssrc: UInt32, answers: Int)] = [
        ("sent", -1, 0xaaaa, 1), ("newest", 0, 0xaaaa, 1), ("never sent", 1, 0xaaaa, 0),
        ("far ahead", 30_000, 0xaaaa, 0), ("before the first", -20, 0xaaaa, 0),
        ("half round", 32_768, 0xaaaa, 0), ("of RTX", -1, 0xaaab, 0), ("of nobody", -1, 0x77, 0),
        ("of the publisher", -1, 0x2222, 0),
    ]

    @Test(arguments: requests)
    func `only what was sent is sent again`(
        name: String,
        step: Int,
        ssrc: UInt32,
        answers: Int
    )
        throws
    {
        var call = try ForwardingTests.call()
        for step in 0..<10 as Range<UInt16> {
            call.sendVideo(sequence: step, pictureID: step, isKeyframe: step == 0)
        }
        let newest = SequenceNumber(rawValue: call.numbers(at: 1)[9])
        call.nack(newest.advanced(by: step).rawValue, from: 1, ssrc: ssrc)
        #expect(call.peers[1].received.count == 10 + answers)
    }

    @Test func `packets older than the history are not retransmitted`() throws {
        var call = try ForwardingTests.call()
        call.sendVideo(sequence: 1, pictureID: 1, isKeyframe: true)
        let number = call.numbers(at: 1)[0]
        call.run(milliseconds: 3_000)
        call.nack(number, from: 1, ssrc: 0xaaaa)
        #expect(call.peers[1].received.count == 1)
        // Newcomers are still sent it.
        #expect(call.core.receiver.pool.used == 2)
        call.run(milliseconds: 16_000)
        #expect(call.core.receiver.pool.used == 1)
    }

    @Test func `a storm of picture losses is one request in 400 ms`() throws {
        var call = try ForwardingTests.call()
        call.sendVideo(sequence: 1, pictureID: 1, isKeyframe: true)
        call.run(milliseconds: 1_000)
        call.peers[0].reports = []
        for _ in 0..<1_000 {
            call.sendRTCP(from: 1) {
                PictureLossIndication(sender: SSRC(rawValue: 1), media: SSRC(rawValue: 0xaaaa))
                    .encode(into: &$0)
            }
            call.run(milliseconds: 2)
        }
        let requests = call.keyframeRequests(at: 0)
        #expect((1...6).contains(requests))
    }

    /// Start of a stream, and its lost and late packets.
    static let wraps: [(name: String, start: UInt64, lost: Set<UInt64>, late: Set<UInt64>)] = [
        ("none", 65_530, [], []), ("last of the round", 65_530, [65_535], []),
        ("first of the next", 65_530, [65_536], []), ("both", 65_530, [65_535, 65_536], []),
        ("across", 65_530, [], [65_535]), ("late first", 65_530, [], [65_536]),
        ("begins at the wrap", 65_535, [], []), ("begins high", 40_000, [40_003], [40_005]),
    ]

    @Test(arguments: wraps)
    func `a wrap neither loses nor repeats`(
        name: String,
        start: UInt64,
        lost: Set<UInt64>,
        late: Set<UInt64>
    ) throws {
        var call = try ForwardingTests.call()
        var held: [UInt64] = []
        func send(_ number: UInt64, in call: inout Call) {
            call.sendVideo(
                sequence: UInt16(truncatingIfNeeded: number),
                pictureID: UInt16(number & 0x7fff),
                isKeyframe: number == start,
                rollover: number >> 16
            )
        }
        for number in start..<start + 20 where !lost.contains(number) {
            if late.contains(number) {
                held.append(number)
                continue
            }
            send(number, in: &call)
            for late in held { send(late, in: &call) }
            held = []
        }
        call.run(milliseconds: 8)
        let first = call.numbers(at: 1)[0]
        let steps = call.numbers(at: 1).map { UInt64($0 &- first) }
        #expect(steps.sorted() == (0..<20).filter { !lost.contains(start + $0) })
        // One request names all that are close together.
        #expect(call.nacks(at: 0) == lost.min().map { [UInt16(truncatingIfNeeded: $0)] } ?? [])
        #expect(call.peers[1].undecryptable == 0)
    }

    @Test func `a publisher's new SSRC goes on where the old one was`() throws {
        var call = try ForwardingTests.call()
        for step in 0..<40 as Range<UInt16> {
            call.sendVideo(
                ssrc: 0x2222 + UInt32(step / 10),
                sequence: step &* 7_000,
                pictureID: step,
                isKeyframe: step % 10 == 0,
                rollover: 0
            )
            call.run(milliseconds: 20)
        }
        #expect(call.numbers(at: 1).isContiguous)
        let count = call.core.transports[0].streams.count
        #expect(count == 2)
    }

    @Test func `reports say what was sent and received`() throws {
        var call = try ForwardingTests.call()
        for step in 0..<100 as Range<UInt16> where step != 50 {
            call.sendVideo(sequence: step, pictureID: step, isKeyframe: step == 0)
            call.run(milliseconds: 20)
        }
        let statistics = call.statistics()
        let encoding = try #require(statistics.publications.last?.encodings.first)
        #expect(encoding.packets == 99)
        #expect(encoding.packetsLost == 1)
        #expect(encoding.layer.width == 640 && encoding.layer.height == 360)
        #expect((45...55).contains(encoding.layer.frameRate))
        #expect(encoding.nacksSent >= 1)
        let slot = try #require(statistics.slots.first { $0.id.index == 0 })
        #expect(slot.packets == 99)
        #expect(slot.codec == .vp8)
        #expect(slot.subscription == 7)
        let viewer = try #require(statistics.transports.last)
        #expect(viewer.connected)
        #expect(viewer.remote == call.peers[1].path.remote)
        #expect(viewer.packetsOut >= 99)
        #expect(statistics.rtpOut == 99)
        #expect(statistics.datagramsOut >= statistics.rtpOut + statistics.rtcpOut)
    }
}
