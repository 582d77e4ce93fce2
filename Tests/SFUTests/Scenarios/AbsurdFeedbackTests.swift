import RTP
import Testing
import WorkerInterface

@testable import SFU

/// Absurd feedback of a viewer with valid keys: it is ignored, or its effect is bounded.
struct AbsurdFeedbackTests {
    struct Row: Sendable, CustomTestStringConvertible {
        var name: String
        /// RTCP type: 205 for transport, 206 for payload-specific feedback.
        var type: UInt8 = 205
        var format: UInt8
        var words: [UInt32]
        /// Most keyframes that it may cost the publisher.
        var keyframes = 0
        /// Most retransmissions that it may cause for each of the ten packets sent.
        var repeats = 0

        var testDescription: String { name }
    }

    private static let media: UInt32 = 0xaaaa
    private static let remb: UInt32 = 0x5245_4d42

    static let rows: [Row] = [
        Row(
            name: "CCFB (RFC 8888) of 16,385 reports, of which some are there",
            format: 11,
            words: [media, 0x0000_4001] + [UInt32](repeating: 0xffff_ffff, count: 300) + [0]
        ),
        Row(name: "CCFB without a source", format: 11, words: []),
        Row(name: "TMMBR of nothing at all (RFC 5104 §4.2.1)", format: 3, words: [0, media, 0]),
        Row(name: "TMMBR of 2^80", format: 3, words: [0, media, 0xffff_ffff]),
        Row(
            name: "REMB of 2^63 and more",
            type: 206,
            format: 15,
            words: [0, remb, 0x01ff_ffff, media]
        ),
        Row(
            name: "REMB of 300 sources, of which 255 are there",
            type: 206,
            format: 15,
            words: [0, remb, 0xffff_ffff] + [UInt32](repeating: media, count: 255)
        ),
        Row(
            name: "FIR of 180 entries, each with a number of its own",
            type: 206,
            format: 4,
            words: [0] + (0..<180).flatMap { [media, $0 << 24] },
            keyframes: 1
        ),
        Row(
            name: "FIR of sources that there are not",
            type: 206,
            format: 4,
            words: [0] + (0..<150).flatMap { [0xdead_0000 + $0, $0 << 24] }
        ),
        Row(
            name: "NACK of 300 times seventeen packets",
            format: 1,
            words: [media] + (0..<300).map { $0 * 17 << 16 | 0xffff },
            repeats: 10
        ),
        Row(
            name: "NACK of what is not there",
            format: 1,
            words: [0xdead_beef] + (0..<300).map { $0 * 17 << 16 | 0xffff }
        ),
    ]

    @Test(arguments: rows)
    func `C12 absurd feedback changes nothing for anybody`(row: Row) throws {
        var call = try ForwardingTests.call()
        for step in 0..<10 as Range<UInt16> {
            call.sendVideo(sequence: step, pictureID: step, isKeyframe: step == 0)
        }
        call.run(milliseconds: 1_000)
        call.peers[0].reports = []
        _ = call.takeEvents()
        let received = call.peers[1].received.count
        let rate = call.core.transports[1].bandwidth?.estimator.estimate
        #expect(rate != nil)
        let times = 20
        for _ in 0..<times {
            call.sendRTCP(from: 1) { output in
                output.append(0x80 | row.format)
                output.append(row.type)
                output.append(bigEndian: UInt16(row.words.count + 1))
                output.append(bigEndian: UInt32(1))
                for word in row.words { output.append(bigEndian: word) }
            }
        }
        call.run(milliseconds: 300)
        #expect(call.keyframeRequests(at: 0) <= row.keyframes)
        #expect(call.peers[1].received.count - received <= times * row.repeats)
        #expect(call.core.transports[1].bandwidth?.estimator.estimate == rate)
        #expect(call.takeEvents().allSatisfy { if case .transport = $0 { false } else { true } })
        let before = call.peers[1].received.count
        call.sendVideo(sequence: 10, pictureID: 10, isKeyframe: false)
        #expect(call.peers[1].received.count == before + 1)
        #expect(call.statistics().isBalanced)
    }
}
