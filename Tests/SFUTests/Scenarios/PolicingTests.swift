import LoadPeer
import RTP
import Testing

@testable import SFU
@testable import WorkerInterface

/// Policing of publishers that exceed their rate limit.
struct PolicingTests {
    /// Packets of a second, their size, and the share that passes.
    struct Row: CustomTestStringConvertible, Sendable {
        var testDescription: String
        var bitrate: Int
        var packetRate = 100_000
        var sent: Int
        var size = 1_000
        var passed: ClosedRange<Double>
    }

    static let rows = [
        Row(testDescription: "what is within", bitrate: 8_000_000, sent: 900, passed: 1...1),
        Row(testDescription: "just what may be", bitrate: 8_000_000, sent: 1_000, passed: 1...1),
        Row(testDescription: "twice as much", bitrate: 8_000_000, sent: 2_000, passed: 0.45...0.6),
        Row(testDescription: "a flood", bitrate: 8_000_000, sent: 25_000, passed: 0.03...0.06),
        Row(
            testDescription: "small packets",
            bitrate: 800_000_000,
            packetRate: 1_000,
            sent: 10_000,
            size: 60,
            passed: 0.09...0.15
        ),
    ]

    @Test(arguments: rows)
    func `a bucket passes its rate`(_ row: Row) {
        var police = RatePolicer(.init(bitrate: row.bitrate, packetRate: row.packetRate))
        let start = Instant(nanoseconds: 1_000_000_000)
        var passed = 0
        let seconds = 10
        for number in 0..<row.sent * seconds {
            let step = Int64(number) * 1_000_000_000 / Int64(row.sent)
            let verdict = police.judge(
                bytes: row.size,
                timestamp: UInt32(number),
                at: start.advanced(nanoseconds: step)
            )
            if verdict == .pass || verdict == .passAfterDrop { passed += 1 }
        }
        let share = Double(passed) / Double(row.sent * seconds)
        // In addition a burst of a second passes.
        #expect(row.passed.contains(share) || row.passed.contains(share - 0.1), "\(share)")
    }

    @Test func `frames are dropped whole`() {
        var police = RatePolicer(.init(bitrate: 80_000, packetRate: 1_000))
        var verdicts: [UInt32: Set<Bool>] = [:]
        for number in 0..<600 {
            let timestamp = UInt32(number / 6)
            let verdict = police.judge(
                bytes: 300,
                timestamp: timestamp,
                at: Instant(nanoseconds: Int64(number / 6) * 33_000_000)
            )
            verdicts[timestamp, default: []].insert(verdict == .pass || verdict == .passAfterDrop)
        }
        // A frame is cut at most once each time that the bucket overflows.
        let mixed = verdicts.values.count { $0.count == 2 }
        let dropped = verdicts.values.count { $0 == [false] }
        #expect(dropped > 50)
        #expect(mixed <= dropped / 2)
    }

    @Test func `R-1 audio has thrice its role's bitrate, and room for headers`() {
        var configuration = Media.audio(0)
        #expect(configuration.rateLimits(most: 50_000_000).bitrate == 2_000_000)
        configuration.cap = LayerCap(bitrate: 32_000)
        #expect(configuration.rateLimits(most: 50_000_000).bitrate == 128_000)
        configuration.cap = LayerCap(bitrate: 4_000_000_000)
        #expect(configuration.rateLimits(most: 50_000_000).bitrate == 2_000_000)
    }

    /// E9: a publisher's excess is dropped and counted; it is forwarded again from a keyframe on.
    @Test func `E9 a publisher's flood goes no further, and it is seen again after it`() throws {
        var limits = CoreLimits()
        limits.publicationBitrate = 1_000_000
        var call = try Call(limits: limits)
        call.join(publications: [Media.audio(0), Media.video(1)])
        call.join(slots: [Media.slot(0), Media.slot(1, kind: .audio, ssrc: 0xbbbb)])
        call.connect(0)
        call.connect(1)
        call.bind(slot: 0, publication: 1)
        call.bind(slot: 1, publication: 0)
        call.sendVideo(sequence: 0, pictureID: 0, isKeyframe: true)
        var sequence: UInt16 = 0
        for _ in 0..<5_000 {
            sequence += 1
            call.sendVideo(sequence: sequence, pictureID: sequence, isKeyframe: false)
            if sequence % 50 == 0 { call.run(milliseconds: 1) }
        }
        let flooded = call.statistics()
        let dropped = Int(flooded.drops[DropReason.policed.index])
        #expect(dropped > 4_000)
        #expect(flooded.isBalanced)
        let before = call.peers[1].received.count
        #expect(before + dropped >= 4_900)
        call.run(milliseconds: 2_000)
        _ = call.keyframeRequests(at: 0)
        sequence += 1
        call.sendVideo(sequence: sequence, pictureID: sequence, isKeyframe: false)
        call.run(milliseconds: 500)
        #expect(call.keyframeRequests(at: 0) > 0)
        sequence += 1
        call.sendVideo(sequence: sequence, pictureID: sequence, isKeyframe: true)
        #expect(call.peers[1].received.count == before + 1)
        #expect(call.numbers(at: 1).isContiguous)
    }

    @Test func `E11 new SSRCs are inspected at a limited rate, others always`() throws {
        var call = try ForwardingTests.call()
        call.sendVideo(sequence: 1, pictureID: 1, isKeyframe: true)
        for ssrc in 0..<300 as Range<UInt32> {
            let packet = Media.packet(
                payloadType: 96,
                sequence: 7,
                timestamp: 0,
                ssrc: 0x8000_0000 + ssrc,
                elements: [(4, Array("x".utf8))],
                payload: [1, 2, 3]
            )
            call.send(packet, from: 0)
        }
        call.sendVideo(sequence: 2, pictureID: 2, isKeyframe: false)
        #expect(call.peers[1].received.count == 2)
        let statistics = call.statistics()
        let limited = statistics.drops[DropReason.streamRateLimited.index]
        #expect((200...201).contains(limited))
        #expect(statistics.isBalanced)
    }

    @Test func `E5 one stranger's checks leave room for another's`() throws {
        var call = try ForwardingTests.call()
        call.now = call.now.advanced(milliseconds: 1_500)
        let forged = ICETests.request(
            ICETests.Check(testDescription: "", username: "core1:load2")
        )
        for _ in 0..<500 { call.inject(forged, on: .from(port: 3)) }
        call.peers[1].path = .from(port: 4_444)
        let before = call.peers[1].peer.checksAnswered
        call.check(from: 1)
        #expect(call.peers[1].peer.checksAnswered == before + 1)
    }

    @Test func `E5 many strangers together meet the limit of the fragment`() throws {
        var call = try ForwardingTests.call()
        call.now = call.now.advanced(milliseconds: 1_500)
        let forged = ICETests.request(
            ICETests.Check(testDescription: "", username: "core1:load2")
        )
        for port in 1...3_000 as ClosedRange<UInt16> { call.inject(forged, on: .from(port: port)) }
        let drops = call.statistics().drops
        #expect(drops[DropReason.stunRateLimited.index] == 2_000)
        #expect(drops[DropReason.stunUnauthenticated.index] == 1_000)
    }
}
