import RTP
import SFU
import TestSupport
import Testing

@testable import Recording
@testable import WorkerInterface

struct FrameTests {
    @Test func `nothing goes out before a keyframe, nor after a loss until the next`() {
        var packets = Packets()
        var assembler = FrameAssembler()
        var marks: [UInt8] = []
        func take(_ frames: [Frame]) { marks += frames.compactMap(\.bytes.last) }
        take(assembler.frames(of: [packets.vp8(1)]))
        packets.pass(milliseconds: 40)
        take(assembler.frames(of: [packets.vp8(2, isKeyframe: true)]))
        packets.pass(milliseconds: 40)
        take(assembler.frames(of: [packets.vp8(3)]))
        packets.pass(milliseconds: 40)
        take(assembler.frames(of: [packets.vp8(4)], followsLoss: true))
        #expect(assembler.awaitsKeyframe)
        packets.pass(milliseconds: 40)
        take(assembler.frames(of: [packets.vp8(5)]))
        packets.pass(milliseconds: 40)
        take(assembler.frames(of: [packets.vp8(6, isKeyframe: true)], followsLoss: true))
        #expect(marks == [2, 3, 6])
        #expect(!assembler.awaitsKeyframe)
    }

    @Test func `a VP8 frame of several packets is put together without descriptors`() {
        var packets = Packets()
        var assembler = FrameAssembler()
        let frames = assembler.frames(of: [
            // X, I, a long picture id, S of partition 0.
            packets.next(hex("90 80 8001 10 aa bb"), isKeyframe: true, isMarked: false),
            packets.next(hex("80 80 8001 cc"), isMarked: false),
            packets.next(hex("01 dd")),
        ])
        #expect(frames.map(\.bytes) == [hex("10 aa bb cc dd")])
        #expect(frames.first?.format == format(.vp8))
    }

    @Test func `a frame whose marker is missing ends where the next begins`() {
        var packets = Packets()
        var assembler = FrameAssembler()
        var all = [packets.next(hex("10 10 aa"), isKeyframe: true, isMarked: false)]
        packets.pass(milliseconds: 40)
        all.append(packets.next(hex("10 11 bb")))
        #expect(assembler.frames(of: all).map(\.bytes) == [hex("10 aa"), hex("11 bb")])
    }

    @Test func `spatial layers of VP9 become a superframe`() {
        var packets = Packets(codec: .vp9)
        var assembler = FrameAssembler()
        let frames = assembler.frames(of: [
            // I and L; B and E; spatial layers 0 and 1.
            packets.next(hex("ac 01 00 00 aa bb"), isKeyframe: true, isMarked: false),
            packets.next(hex("a8 01 03 00 cc"), isMarked: false),
            packets.next(hex("a4 01 03 00 dd ee")),
        ])
        let index = hex("d9 02000000 03000000 d9")
        #expect(frames.map(\.bytes) == [hex("aa bb cc dd ee") + index])
    }

    @Test func `the size of VP9 is read from the frame where no structure tells it`() {
        var packets = Packets(codec: .vp9)
        var assembler = FrameAssembler()
        // Profile 0, a key frame, color space 2, 320 x 180.
        var packet = packets.next(hex("0c 82 498342 20 13f0 0b30 00"), isKeyframe: true)
        packet.width = 0
        packet.height = 0
        #expect(assembler.frames(of: [packet]).first?.format == format(.vp9, 320, 180))
    }

    static let sequenceSet = hex("67 42c01f 8c8d40")
    static let pictureSet = hex("68 ce3c80")
    static let configuration =
        hex("01 42c01f ff e1 0007") + sequenceSet + hex("01 0004") + pictureSet

    @Test func `H.264 units come single, together and in fragments`() {
        var packets = Packets(codec: .h264)
        var assembler = FrameAssembler()
        let sets = hex("78 0007") + Self.sequenceSet + hex("0004") + Self.pictureSet
        let frames = assembler.frames(of: [
            packets.next(sets, isKeyframe: true, isMarked: false),
            packets.next(hex("7c 85 aabb"), isKeyframe: true, isMarked: false),
            packets.next(hex("7c 05 cc"), isMarked: false),
            packets.next(hex("7c 45 dd")),
        ])
        #expect(frames.map(\.bytes) == [hex("00000005 65 aabbccdd")])
        var expected = format(.h264)
        expected.configuration = Self.configuration
        #expect(frames.first?.format == expected)
        packets.pass(milliseconds: 40)
        let later = assembler.frames(of: [packets.next(hex("41 ee"))])
        #expect(later.map(\.bytes) == [hex("00000002 41ee")])
        #expect(later.first?.isKeyframe == false && later.first?.format == nil)
    }

    @Test func `other parameter sets want another file`() {
        var old = format(.h264)
        old.configuration = Self.configuration
        var new = old
        new.configuration[10] ^= 1
        #expect(old.canContinue(with: old) && !old.canContinue(with: new))
        #expect(format(.vp8).canContinue(with: format(.vp8, 320, 180)))
        #expect(!format(.vp8).canContinue(with: format(.vp9)))
    }

    static let brokenH264: [(name: String, payloads: [String])] = [
        ("a fragment without a start", ["67 42c01f", "68 ce", "7c 05 aa"]),
        ("a fragment without an end", ["67 42c01f", "68 ce", "7c 85 aa"]),
        ("an aggregate past its end", ["78 0009 67 42c01f"]),
        ("no parameter sets", ["65 aa"]),
        ("a packetization that nobody sends", ["67 42c01f", "68 ce", "79 00"]),
    ]

    @Test(arguments: brokenH264)
    func `broken H.264 is left out, and a keyframe awaited`(name: String, payloads: [String]) {
        var packets = Packets(codec: .h264)
        var assembler = FrameAssembler()
        let all = payloads.enumerated().map { index, payload in
            packets.next(
                hex(payload),
                isKeyframe: index == 0,
                isMarked: index == payloads.count - 1
            )
        }
        #expect(assembler.frames(of: all).isEmpty)
        #expect(assembler.awaitsKeyframe)
    }

    @Test func `AV1 units get their sizes, and delimiters go`() {
        var packets = Packets(codec: .av1)
        var assembler = FrameAssembler()
        let frames = assembler.frames(of: [
            // N, two elements: a delimiter with its length, then the beginning of a frame.
            packets.next(hex("68 02 1200 30 aabb"), isKeyframe: true, isMarked: false),
            // Z, one element: the frame's end.
            packets.next(hex("90 ccdd")),
        ])
        #expect(frames.map(\.bytes) == [hex("32 04 aabbccdd")])
    }

    @Test func `an AV1 unit of as many packets as a frame may have is put together`() {
        var packets = Packets(codec: .av1)
        var assembler = FrameAssembler()
        var unit: [UInt8] = []
        var all: [TapPacket] = []
        let last = FrameAssembler.packetLimit - 1
        for index in 0...last {
            // W is 1; the first has Y and N, the last one Z, and those between Z and Y.
            let header: UInt8 = index == 0 ? 0x58 : index == last ? 0x90 : 0xd0
            var element = [UInt8](repeating: UInt8(truncatingIfNeeded: index), count: 999)
            if index == 0 { element[0] = 0x30 }
            unit += element
            let packet = packets.next(
                [header] + element,
                isKeyframe: index == 0,
                isMarked: index == last
            )
            all.append(packet)
        }
        let frames = assembler.frames(of: all)
        // The unit's header with the bit of a size, then 4,091,903 in four bytes.
        let isWhole = frames.map(\.bytes) == [hex("32 ff dff901") + unit.dropFirst()]
        #expect(isWhole, "\(frames.map(\.bytes.count))")
    }

    static let sizes: [(name: String, beyond: Int, marks: [UInt8])] = [
        ("as many bytes as may be", 0, [0, 7]),
        ("one byte too many", 1, [7]),
    ]

    @Test(arguments: sizes)
    func `a frame with too many bytes is left out, and the next keyframe taken`(
        name: String,
        beyond: Int,
        marks: [UInt8]
    ) {
        var packets = Packets()
        var assembler = FrameAssembler()
        let count = 1_024
        var all: [TapPacket] = []
        for index in 0..<count {
            var payload = [UInt8](repeating: 0, count: FrameAssembler.byteLimit / count)
            if index == 0 { payload[0] = 0x10 }
            let isLast = index == count - 1
            if isLast { payload += [UInt8](repeating: 0, count: beyond) }
            all.append(packets.next(payload, isKeyframe: index == 0, isMarked: isLast))
        }
        packets.pass(milliseconds: 40)
        all.append(packets.vp8(7, isKeyframe: true))
        let frames = assembler.frames(of: all)
        #expect(frames.compactMap(\.bytes.last) == marks)
        // Each packet has a descriptor of one byte.
        let counts = beyond == 0 ? [FrameAssembler.byteLimit - count, 4] : [4]
        #expect(frames.map(\.bytes.count) == counts)
    }

    static let brokenAV1: [(name: String, payloads: [String])] = [
        ("goes on with nothing", ["98 aabb"]),
        ("does not go on", ["58 30 aabb", "10 30 cc"]),
        ("an element past its end", ["28 09 30 aa"]),
        ("fewer elements than said", ["38 01 30"]),
        ("a unit longer than its element", ["18 32 05 aa"]),
        ("a length without an end", ["08 ff ff"]),
        // libavformat's parser does not recover from it.
        ("a sequence header that ends in its timing", ["18 08 04 00 01 00 00 00 00 00 7a"]),
        ("a sequence header without a size", ["18 08 20 00 00"]),
    ]

    @Test(arguments: brokenAV1)
    func `broken AV1 is left out, and a keyframe awaited`(name: String, payloads: [String]) {
        var packets = Packets(codec: .av1)
        var assembler = FrameAssembler()
        let all = payloads.enumerated().map { index, payload in
            packets.next(
                hex(payload),
                isKeyframe: index == 0,
                isMarked: index == payloads.count - 1
            )
        }
        #expect(assembler.frames(of: all).isEmpty)
        #expect(assembler.awaitsKeyframe)
    }

    @Test func `random bytes trap nowhere`() {
        var state: UInt64 = 7
        func random() -> UInt64 {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return state >> 33
        }
        var frames = 0
        for codec in [Codec.vp8, .vp9, .h264, .av1, .opus] {
            var packets = Packets(codec: codec)
            var assembler = FrameAssembler()
            for _ in 0..<5_000 {
                let length = Int(random() % 24)
                let payload = (0..<length).map { _ in UInt8(truncatingIfNeeded: random()) }
                let packet = packets.next(
                    payload,
                    isKeyframe: random() % 2 == 0,
                    isMarked: random() % 2 == 0
                )
                frames += assembler.frames(of: [packet], followsLoss: random() % 8 == 0).count
                if random() % 2 == 0 { packets.pass(milliseconds: 10) }
            }
        }
        #expect(frames > 1_000, "too few to tell")
    }

    private func format(_ codec: Codec, _ width: Int = 640, _ height: Int = 360) -> FrameFormat {
        FrameFormat(codec: codec, width: width, height: height, configuration: [])
    }
}
