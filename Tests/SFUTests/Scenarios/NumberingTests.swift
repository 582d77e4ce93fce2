import RTP
import Testing
import WorkerInterface

@testable import SFU

/// Outgoing sequence numbers over long streams, wraps, padding and retransmissions.
struct NumberingTests {
    @Test func `a stream flows on after more packets than half a sequence space`() throws {
        var call = try ForwardingTests.call()
        var sequence: UInt64 = 65_000
        for step in 0..<34_000 {
            call.sendVideo(
                sequence: UInt16(truncatingIfNeeded: sequence),
                pictureID: UInt16(step & 0x7fff),
                isKeyframe: step == 0,
                rollover: sequence >> 16
            )
            sequence += 1
            // More than 10,000 a second would exceed one publisher's limit.
            if step % 5 == 0 { call.now = call.now.advanced(milliseconds: 1) }
            if step % 1_000 == 0 { call.peers[1].received = [] }
        }
        let (received, undecryptable) = (call.peers[1].received.count, call.peers[1].undecryptable)
        #expect(received == 999)
        #expect(undecryptable == 0)
        #expect(call.statistics().rtpOut == 34_000)
    }

    /// The publisher's path fails for so long that its roll-over counter can no longer be guessed.
    @Test(arguments: [33_000, 40_000, 70_000, 250_000] as [UInt64])
    func `G3 a picture is back after an outage of many packets`(lost: UInt64) throws {
        var call = try ForwardingTests.call()
        var sequence: UInt64 = 65_000
        var keyframes: [UInt64] = []
        func send(_ packets: Int) {
            for _ in 0..<packets {
                let isAsked = call.keyframeRequests(at: 0) > keyframes.count - 1
                if isAsked || keyframes.isEmpty { keyframes.append(sequence) }
                call.sendVideo(
                    sequence: UInt16(truncatingIfNeeded: sequence),
                    pictureID: UInt16(truncatingIfNeeded: sequence & 0x7fff),
                    isKeyframe: keyframes.last == sequence,
                    rollover: sequence >> 16
                )
                sequence += 1
                call.run(milliseconds: 2)
            }
        }
        send(1_000)
        #expect(call.peers[1].received.count == 1_000)
        #expect(keyframes == [65_000])
        sequence += lost
        call.run(milliseconds: 5_000)
        call.peers[1].received = []
        let back = sequence
        send(500)
        #expect(keyframes.count == 2)
        let keyframe = try #require(keyframes.last)
        // A hundred packets establish the new index, and a keyframe requested then resumes the
        // stream.
        #expect(keyframe > back && keyframe < back + 110)
        let (received, undecryptable) = (call.peers[1].received.count, call.peers[1].undecryptable)
        #expect(received == Int(sequence - keyframe))
        #expect(undecryptable == 0)
        #expect(call.statistics().isBalanced)
    }

    static let holes: [(name: String, lost: UInt16, milliseconds: Int64, isAsked: Bool)] = [
        // A screen share that hardly changes, and that lost the beginning of a picture.
        (name: "a few after a silence", lost: 9, milliseconds: 2_000, isAsked: true),
        (name: "a burst", lost: 18, milliseconds: 900, isAsked: true),
        (name: "an outage", lost: 60, milliseconds: 3_000, isAsked: false),
    ]

    @Test(arguments: holes)
    func `H12 what an outage has lost is not asked for again, but a keyframe`(
        name: String,
        lost: UInt16,
        milliseconds: Int64,
        isAsked: Bool
    ) throws {
        var call = try ForwardingTests.call()
        for step in 0..<20 as Range<UInt16> {
            call.sendVideo(sequence: step, pictureID: step, isKeyframe: step == 0)
            call.run(milliseconds: 50)
        }
        let keyframes = call.keyframeRequests(at: 0)
        call.run(milliseconds: milliseconds - 50)
        call.sendVideo(sequence: 20 + lost, pictureID: 20 + lost, isKeyframe: false)
        call.run(milliseconds: 10)
        #expect(call.nacks(at: 0).first == (isAsked ? 20 : nil))
        #expect(call.keyframeRequests(at: 0) == keyframes + (isAsked ? 0 : 1))
    }

    @Test func `H12 after an outage a viewer gets a keyframe, and nothing from before`() throws {
        var call = try ForwardingTests.call()
        func send(_ steps: Range<UInt16>) {
            for step in steps {
                call.sendVideo(sequence: step, pictureID: step, isKeyframe: step % 60 == 0)
                call.run(milliseconds: 50)
            }
        }
        send(0..<60)
        // It has received 10 pictures; of the 50 missed ones, 30 are kept.
        let first = try #require(call.peers[1].received.first)
        let number = UInt16(first[2]) << 8 | UInt16(first[3])
        func ask() -> (keyframes: Int, packets: Int) {
            let before = (call.keyframeRequests(at: 0), call.peers[1].received.count)
            call.nack((number + 10)..<(number + 60), from: 1, ssrc: 0xaaaa)
            call.run(milliseconds: 5)
            let after = (call.keyframeRequests(at: 0), call.peers[1].received.count)
            return (after.0 - before.0, after.1 - before.1)
        }
        #expect(ask() == (keyframes: 1, packets: 0))
        // The next picture is a keyframe: a few of the earlier packets may still be shown.
        send(60..<61)
        let (keyframes, packets) = ask()
        #expect(keyframes == 0 && (2...3).contains(packets))
    }

    /// Packets of one encoding as they reach a slot: number, and whether it is padding.
    static let orders: [(name: String, packets: [(Int64, Bool)], indexes: [Int64?])] = [
        ("in order", [(10, false), (11, false), (12, false)], [0, 1, 2]),
        ("padding between", [(10, false), (11, true), (12, false)], [0, nil, 1]),
        ("late media", [(10, false), (12, false), (11, false)], [0, 2, 1]),
        (
            "media late after padding", [(10, false), (12, true), (11, false), (13, false)],
            [0, nil, 1, 2]
        ),
        (
            "padding turned round",
            [(10, false), (13, true), (12, true), (11, false), (14, false)],
            [0, nil, nil, 1, 3]
        ),
        (
            "farther than receivers can follow",
            [(10, false), (3_011, false), (6_100, false), (6_000, false)],
            [0, 3_001, nil, nil]
        ),
        (
            "many wide gaps", [(10, false), (1_510, false), (3_010, false), (4_510, false)],
            [0, 1_500, 3_000, nil]
        ),
        ("too far behind", [(10, false), (2_010, false), (11, false)], [0, 2_000, nil]),
    ]

    @Test(arguments: orders)
    func `each packet has its number`(
        name: String,
        packets: [(Int64, Bool)],
        indexes: [Int64?]
    ) {
        var rewriter = RTPRewriter(random: 7)
        var earlier = RTPRewriter.none
        let start = rewriter.highest + 1
        var found: [Int64?] = []
        for (number, isPadding) in packets {
            var info = PacketInfo()
            info.number = number
            info.encoding = 0
            info.epoch = 1
            if isPadding {
                _ = rewriter.skip(info, after: &earlier)
                found.append(nil)
                continue
            }
            if !rewriter.hasStarted {
                rewriter.begin(with: info, clockRate: 90_000, timestamp: nil, after: &earlier)
            }
            let place = rewriter.place(info, after: earlier)
            if let (span, index) = place {
                if index != rewriter.highest + 1 { rewriter.use(index, after: &earlier) }
                rewriter.sent(info, index: index, span: span)
            }
            found.append(place.map { $0.index - start })
        }
        #expect(found == indexes, "\(name)")
    }

    @Test func `pictures go on after the last, though something empty was sent behind it`() throws {
        var rewriter = RTPRewriter(random: 7)
        var earlier = RTPRewriter.none
        var info = PacketInfo()
        info.encoding = 0
        info.number = 10
        info.pictureID = 100
        rewriter.begin(with: info, clockRate: 90_000, timestamp: nil, after: &earlier)
        let start = rewriter.highest + 1
        rewriter.sent(info, index: start, span: rewriter.current)
        rewriter.filled(index: start + 2)
        // The picture before the filled gap arrives late.
        info.number = 11
        info.pictureID = 101
        info.timestamp = 3_000
        let place = rewriter.place(info, after: earlier)
        let (span, index) = try #require(place)
        #expect(index == start + 1)
        rewriter.sent(info, index: index, span: span)
        info.number = 50
        info.pictureID = 140
        info.timestamp = 120_000
        rewriter.begin(with: info, clockRate: 90_000, timestamp: nil, after: &earlier)
        #expect(info.pictureID &+ rewriter.current.pictureOffset == 102)
    }

    @Test func `a sent packet is found by its number after any number of wraps`() {
        var rewriter = RTPRewriter(random: 1)
        var earlier = RTPRewriter.none
        for number in 0..<200_000 as Range<Int64> {
            var info = PacketInfo()
            info.number = number
            info.encoding = 3
            if number == 0 {
                rewriter.begin(with: info, clockRate: 90_000, timestamp: nil, after: &earlier)
            }
            guard let (span, index) = rewriter.place(info, after: earlier) else {
                Issue.record("no place for \(number)")
                return
            }
            rewriter.sent(info, index: index, span: span)
        }
        let out = SequenceNumber(truncating: Int(rewriter.highest - 100))
        let original = rewriter.original(of: out, after: earlier)
        #expect(original?.number == 199_899)
        let next = SequenceNumber(truncating: Int(rewriter.highest + 1))
        let unsent = rewriter.original(of: next, after: earlier)
        #expect(unsent == nil)
    }
}
