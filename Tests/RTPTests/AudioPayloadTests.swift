import TestSupport
import Testing

@testable import RTP

@Suite struct OpusPacketTests {
    struct Row: CustomTestStringConvertible, Sendable {
        var testDescription: String
        var payload: [UInt8]
        var samples: Int?
    }

    static let rows = [
        Row(testDescription: "nothing", payload: [], samples: nil),
        Row(testDescription: "SILK 10 ms", payload: [0, 0, 0], samples: 480),
        Row(testDescription: "SILK 20 ms", payload: [1 << 3, 0, 0], samples: 960),
        Row(testDescription: "SILK 40 ms", payload: [2 << 3, 0, 0], samples: 1920),
        Row(testDescription: "SILK 60 ms", payload: [3 << 3, 0, 0], samples: 2880),
        Row(testDescription: "hybrid 10 ms", payload: [12 << 3, 0, 0], samples: 480),
        Row(testDescription: "hybrid 20 ms", payload: [13 << 3, 0, 0], samples: 960),
        Row(testDescription: "CELT 2.5 ms", payload: [16 << 3, 0, 0], samples: 120),
        Row(testDescription: "CELT 5 ms", payload: [17 << 3, 0, 0], samples: 240),
        Row(testDescription: "CELT 10 ms", payload: [18 << 3, 0, 0], samples: 480),
        Row(
            testDescription: "CELT 20 ms, as browsers send",
            payload: [0x78 | 0x80, 0, 0],
            samples: 960
        ),
        Row(testDescription: "two frames", payload: [13 << 3 | 1, 0, 0], samples: 1920),
        Row(testDescription: "six frames", payload: [13 << 3 | 3, 6, 0], samples: 5760),
        Row(testDescription: "seven frames", payload: [13 << 3 | 3, 7, 0], samples: nil),
        Row(testDescription: "no frames", payload: [13 << 3 | 3, 0, 0], samples: nil),
        Row(testDescription: "no frame count", payload: [13 << 3 | 3], samples: nil),
    ]

    @Test(arguments: rows)
    func `reads the duration of Opus packets (RFC 6716)`(_ row: Row) {
        #expect(OpusPacket(row.payload)?.samples == row.samples)
    }

    @Test(arguments: zip(1...4, [true, true, false, false]))
    func `short Opus packets are silence`(length: Int, isDTX: Bool) {
        let payload = [UInt8](repeating: 0xf8, count: length)
        #expect(OpusPacket(payload)?.isDTX == isDTX)
    }
}

@Suite struct REDPayloadTests {
    /// RFC 2198 §3: two older blocks of 2 and 3 bytes, then one of type 111.
    static let two = hex("ef 1e0002 ef 0f0003 6f aabb ccddee 11223344")

    @Test func `finds every block`() throws {
        let bytes = Self.two
        guard let payload = REDPayload(bytes.span) else {
            Issue.record("refused")
            return
        }
        let count = payload.redundantCount
        let blocks = (0..<count).map { payload[$0] }
        let (type, offset) = (payload.primaryPayloadType, payload.primaryOffset)
        let header = payload.primaryHeaderOffset
        let primary = payload.primary.array
        let opus = PayloadType(rawValue: 111)
        #expect(
            blocks == [
                REDPayload.Block(payloadType: opus, timestampOffset: 1920, offset: 9, length: 2),
                REDPayload.Block(payloadType: opus, timestampOffset: 960, offset: 11, length: 3),
            ]
        )
        #expect(type == opus)
        #expect(offset == 14)
        #expect(header == 8)
        #expect(primary == hex("11223344"))
    }

    @Test(arguments: [
        "", "ef", "ef000000", "ef000001 6f", "ef000002 6f aa",
        String(repeating: "ef000000", count: 33) + "6f",
    ])
    func `refuses blocks that do not fit`(text: String) {
        let bytes = hex(text)
        let isRefused = REDPayload(bytes.span) == nil
        #expect(isRefused)
    }

    @Test(arguments: [
        "6f", "6f aa", "ef000001 6f aa", String(repeating: "ef000000", count: 32) + "6f",
    ])
    func `takes an empty primary block`(text: String) {
        let bytes = hex(text)
        let isTaken = REDPayload(bytes.span) != nil
        #expect(isTaken)
    }
}
