import TestSupport
import Testing

@testable import RTP

@Suite struct VP8DescriptorTests {
    /// A key frame of 640x480 with a 15-bit picture id, TL0PICIDX and TID.
    static let keyframe = hex("90e0 8123 45 20 50 31 00 9d012a 8002 e001 00")

    @Test func `reads a key frame`() throws {
        let payload = Self.keyframe
        let descriptor = try #require(VP8Descriptor(payload))
        #expect(descriptor.length == 6)
        #expect(descriptor.startsFrame)
        #expect(descriptor.pictureID == 0x0123)
        #expect(descriptor.hasLongPictureID)
        #expect(descriptor.pictureIDOffset == 2)
        #expect(descriptor.tl0PictureIndex == 0x45)
        #expect(descriptor.tl0PictureIndexOffset == 4)
        #expect(descriptor.temporalID == 0)
        #expect(descriptor.layerSync)
        #expect(descriptor.keyIndex == nil)
        #expect(descriptor.isKeyframeStart(payload))
        #expect(descriptor.resolution(payload) == PictureSize(width: 640, height: 480))
    }

    struct Row: CustomTestStringConvertible, Sendable {
        var testDescription: String
        var payload: [UInt8]
        /// The descriptor's length; `nil` where it is rejected.
        var length: Int?
        var isKeyframeStart = false
    }

    static let rows = [
        Row(testDescription: "nothing", payload: [], length: nil),
        Row(
            testDescription: "no extension, key",
            payload: hex("10 00"),
            length: 1,
            isKeyframeStart: true
        ),
        Row(testDescription: "no extension, delta", payload: hex("10 01"), length: 1),
        Row(testDescription: "second partition", payload: hex("11 00"), length: 1),
        Row(testDescription: "not a start", payload: hex("00 00"), length: 1),
        Row(testDescription: "descriptor alone", payload: hex("10"), length: 1),
        Row(
            testDescription: "short picture id",
            payload: hex("9080 7f 00"),
            length: 3,
            isKeyframeStart: true
        ),
        Row(
            testDescription: "KEYIDX alone",
            payload: hex("9010 1f 00"),
            length: 3,
            isKeyframeStart: true
        ),
        Row(testDescription: "no flags", payload: hex("90"), length: nil),
        Row(testDescription: "half a picture id", payload: hex("9080 81"), length: nil),
        Row(testDescription: "no TL0PICIDX", payload: hex("90c0 01"), length: nil),
        Row(testDescription: "no TID", payload: hex("90e0 01 02"), length: nil),
    ]

    @Test(arguments: rows)
    func `reads or refuses`(_ row: Row) {
        let descriptor = VP8Descriptor(row.payload)
        #expect(descriptor?.length == row.length)
        #expect(descriptor?.isKeyframeStart(row.payload) ?? false == row.isKeyframeStart)
    }
}

@Suite struct VP9DescriptorTests {
    /// I, L, B, E, V; two spatial layers of 320x180 and 640x360, one picture in the group.
    static let keyframe = hex("ae 8123 01 45 38 0140 00b4 0280 0168 01 04 01 00")

    @Test func `reads a key frame with its structure`() throws {
        let payload = Self.keyframe
        let descriptor = try #require(VP9Descriptor(payload))
        #expect(descriptor.pictureID == 0x0123)
        #expect(descriptor.pictureIDOffset == 1)
        #expect(descriptor.hasLongPictureID)
        #expect(descriptor.tl0PictureIndex == 0x45)
        #expect(descriptor.tl0PictureIndexOffset == 4)
        #expect(descriptor.spatialLayerCount == 2)
        #expect(descriptor.smallestResolution == PictureSize(width: 320, height: 180))
        #expect(descriptor.largestResolution == PictureSize(width: 640, height: 360))
        #expect(descriptor.length == payload.count - 1)
        #expect(descriptor.startsFrame && descriptor.endsFrame)
        // D is set, so this is not the lowest layer.
        #expect(!descriptor.isKeyframeStart)
    }

    struct Row: CustomTestStringConvertible, Sendable {
        var testDescription: String
        var payload: [UInt8]
        var length: Int?
        var isKeyframeStart = false
    }

    static let rows = [
        Row(testDescription: "nothing", payload: [], length: nil),
        Row(testDescription: "key", payload: hex("08"), length: 1, isKeyframeStart: true),
        Row(testDescription: "delta", payload: hex("48"), length: 1),
        Row(testDescription: "not a start", payload: hex("04"), length: 1),
        Row(testDescription: "upper layer", payload: hex("28 02 00"), length: 3),
        Row(
            testDescription: "flexible, three references",
            payload: hex("d8 01 03 05 06"),
            length: 5
        ),
        Row(testDescription: "flexible, one reference", payload: hex("d8 01 02 05 06"), length: 3),
        Row(testDescription: "no picture id", payload: hex("80"), length: nil),
        Row(testDescription: "half a picture id", payload: hex("80 80"), length: nil),
        Row(testDescription: "no TL0PICIDX", payload: hex("20 00"), length: nil),
        Row(testDescription: "no reference", payload: hex("50"), length: nil),
        Row(
            testDescription: "structure of 255 pictures cut short",
            payload: hex("0a 08 ff 0c"),
            length: nil
        ),
        Row(testDescription: "sizes cut short", payload: hex("0a f0 0001 0001"), length: nil),
    ]

    @Test(arguments: rows)
    func `reads or refuses`(_ row: Row) {
        let descriptor = VP9Descriptor(row.payload)
        #expect(descriptor?.length == row.length)
        #expect(descriptor?.isKeyframeStart ?? false == row.isKeyframeStart)
    }
}

@Suite struct H264PayloadTests {
    struct Row: CustomTestStringConvertible, Sendable {
        var testDescription: String
        var payload: [UInt8]
        var types: [UInt8]
        var isKeyframeStart: Bool
    }

    static let rows = [
        Row(testDescription: "nothing", payload: [], types: [], isKeyframeStart: false),
        Row(testDescription: "slice", payload: hex("41 9a"), types: [1], isKeyframeStart: false),
        Row(testDescription: "refresh", payload: hex("65 88"), types: [5], isKeyframeStart: true),
        Row(
            testDescription: "parameters",
            payload: hex("67 42"),
            types: [7],
            isKeyframeStart: true
        ),
        Row(
            testDescription: "STAP-A of parameters",
            payload: hex("78 0002 6742 0002 68ce"),
            types: [7, 8],
            isKeyframeStart: true
        ),
        Row(
            testDescription: "STAP-A with a unit past the end",
            payload: hex("78 0002 68ce 0005 67"),
            types: [8],
            isKeyframeStart: false
        ),
        Row(
            testDescription: "STAP-A with a unit of nothing",
            payload: hex("78 0000 0002 6742"),
            types: [],
            isKeyframeStart: false
        ),
        Row(testDescription: "STAP-A alone", payload: hex("78"), types: [], isKeyframeStart: false),
        Row(
            testDescription: "FU-A start",
            payload: hex("7c 85 88"),
            types: [5],
            isKeyframeStart: true
        ),
        Row(
            testDescription: "FU-A middle",
            payload: hex("7c 05 88"),
            types: [5],
            isKeyframeStart: false
        ),
        Row(testDescription: "FU-A alone", payload: hex("7c"), types: [], isKeyframeStart: false),
        Row(
            testDescription: "MTAP16",
            payload: hex("7a 0000 00"),
            types: [],
            isKeyframeStart: false
        ),
    ]

    @Test(arguments: rows)
    func `iterates over NAL units (RFC 6184)`(_ row: Row) {
        var units = H264Payload(row.payload.span)
        var types: [UInt8] = []
        while let unit = units.next() { types.append(unit.type) }
        #expect(types == row.types)
        #expect(H264Payload.isKeyframeStart(row.payload) == row.isKeyframeStart)
    }

    /// Encodes parameters as in ITU-T H.264 §7.3.2.1.1: `units` macroblocks, cropped by `crop`.
    static func parameters(
        profile: Int = 66,
        units: (Int, Int),
        crop: [Int] = [],
        framesOnly: Bool = true
    ) -> [UInt8] {
        var writer = BitWriter()
        writer.put(0x67, bits: 8)
        writer.put(profile, bits: 8)
        writer.put(0x00_001f, bits: 16)
        writer.putExponentialGolomb(0)
        if profile == 100 {
            for value in [1, 0, 0] { writer.putExponentialGolomb(value) }
            // The only scaling matrix; its first list ends at once, by a delta of -8.
            writer.put(0b011, bits: 3)
            writer.putExponentialGolomb(16)
            writer.put(0, bits: 7)
        }
        writer.putExponentialGolomb(0)
        writer.putExponentialGolomb(2)
        writer.putExponentialGolomb(1)
        writer.put(0, bits: 1)
        writer.putExponentialGolomb(units.0 - 1)
        writer.putExponentialGolomb(units.1 - 1)
        writer.put(framesOnly ? 1 : 0, bits: framesOnly ? 1 : 2)
        writer.put(1, bits: 1)
        writer.put(crop.isEmpty ? 0 : 1, bits: 1)
        for value in crop { writer.putExponentialGolomb(value) }
        writer.put(0b01, bits: 2)
        return writer.bytes
    }

    @Test func `reads the size from parameter sets`() {
        let plain = Self.parameters(units: (80, 45))
        #expect(H264Payload.resolution(plain) == PictureSize(width: 1280, height: 720))
        let cropped = Self.parameters(units: (120, 68), crop: [0, 0, 0, 4])
        #expect(H264Payload.resolution(cropped) == PictureSize(width: 1920, height: 1080))
        let high = Self.parameters(profile: 100, units: (40, 30))
        #expect(H264Payload.resolution(high) == PictureSize(width: 640, height: 480))
        let fields = Self.parameters(units: (45, 18), framesOnly: false)
        #expect(H264Payload.resolution(fields) == PictureSize(width: 720, height: 576))
    }

    @Test func `reads no size from impossible or truncated parameter sets`() {
        let overcropped = Self.parameters(units: (2, 2), crop: [8, 8, 0, 0])
        #expect(H264Payload.resolution(overcropped) == nil)
        let huge = Self.parameters(units: (1 << 20, 1))
        #expect(H264Payload.resolution(huge) == nil)
        let whole = Self.parameters(units: (80, 45))
        for length in 0..<whole.count - 1 {
            #expect(H264Payload.resolution(Array(whole.prefix(length))) == nil)
        }
    }

    /// ITU-T H.264 §7.4.1.
    @Test func `skips emulation prevention`() {
        let zeros = hex("00 00 03 01 00 00 03 00 00 03 00 ff")
        var reader = BitReader(zeros.span, skipsEmulationPrevention: true)
        let read = (0..<9).map { _ in reader.bits(8) }
        let isExhausted = reader.isExhausted
        #expect(read == [0, 0, 1, 0, 0, 0, 0, 0, 255])
        #expect(!isExhausted)
    }
}

@Suite struct AV1AggregationHeaderTests {
    @Test(
        arguments: zip(
            [0x08, 0x18, 0x88, 0x10, 0x00] as [UInt8],
            [true, true, false, false, false]
        )
    )
    func `N starts a sequence`(first: UInt8, isKeyframeStart: Bool) {
        let header = AV1AggregationHeader([first])
        #expect(header?.isKeyframeStart == isKeyframeStart)
    }

    @Test func `reads the flags`() {
        let header = AV1AggregationHeader([0xe8])
        #expect(header?.continuesUnit == true)
        #expect(header?.isContinued == true)
        #expect(header?.elementCount == 2)
        #expect(AV1AggregationHeader([]) == nil)
    }
}
