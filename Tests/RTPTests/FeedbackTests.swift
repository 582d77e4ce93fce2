import TestSupport
import Testing

@testable import RTP

@Suite struct GenericNACKTests {
    struct Row: CustomTestStringConvertible, Sendable {
        var testDescription: String
        var lost: [UInt16]
        var pairs: String
    }

    static let rows = [
        Row(testDescription: "one", lost: [5], pairs: "0005 0000"),
        Row(testDescription: "neighbours", lost: [5, 6, 21], pairs: "0005 8001"),
        Row(testDescription: "just too far", lost: [5, 22], pairs: "0005 0000 0016 0000"),
        Row(testDescription: "over the wrap", lost: [65_535, 0, 15], pairs: "ffff 8001"),
        Row(testDescription: "named twice", lost: [5, 5, 6], pairs: "0005 0001"),
    ]

    @Test(arguments: rows)
    func `packs NACKed numbers into pairs`(_ row: Row) throws {
        let lost = row.lost.map { SequenceNumber(rawValue: $0) }
        let bytes = encoded(capacity: GenericNACK.encodedSize(lost: lost.count)) {
            GenericNACK.encode(
                sender: SSRC(rawValue: 1),
                media: SSRC(rawValue: 2),
                lost: lost.span,
                into: &$0
            )
        }
        let pairs = hex(row.pairs)
        #expect(
            bytes == hex("81cd 00") + [UInt8(2 + pairs.count / 4)] + hex("00000001 00000002")
                + pairs
        )
        #expect(Set(try lostNumbers(bytes)) == Set(row.lost))
    }

    @Test(arguments: [1, 2, 3] as [UInt64])
    func `any ascending NACK list round-trips`(seed: UInt64) throws {
        var generator = SeededRandom(seed: seed)
        for _ in 0..<200 {
            var number = UInt16.random(in: 0...UInt16.max, using: &generator)
            let lost = (0..<Int.random(in: 1...100, using: &generator)).map { _ in
                number &+= UInt16.random(in: 1...30, using: &generator)
                return number
            }
            let numbers = lost.map { SequenceNumber(rawValue: $0) }
            let bytes = encoded {
                GenericNACK.encode(
                    sender: SSRC(rawValue: 1),
                    media: SSRC(rawValue: 2),
                    lost: numbers.span,
                    into: &$0
                )
            }
            #expect(try lostNumbers(bytes) == lost)
        }
    }

    private func lostNumbers(_ bytes: [UInt8]) throws -> [UInt16] {
        var blocks = RTCPBlocks(bytes.span)
        guard let block = blocks.next() else { return [] }
        let nack = try GenericNACK(block)
        return (0..<nack.count).flatMap { index in
            let (packetID, bitmask) = nack[index]
            let rest = (0..<16).filter { bitmask >> $0 & 1 != 0 }
            return [packetID.rawValue] + rest.map { packetID.advanced(by: $0 + 1).rawValue }
        }
    }
}

@Suite struct KeyframeRequestTests {
    /// RFC 4585 §6.3.1.
    @Test func `a picture loss indication round-trips`() throws {
        let loss = PictureLossIndication(sender: SSRC(rawValue: 1), media: SSRC(rawValue: 2))
        let bytes = encoded(capacity: PictureLossIndication.encodedSize) { loss.encode(into: &$0) }
        #expect(bytes == hex("81ce0002 00000001 00000002"))
        var blocks = RTCPBlocks(bytes.span)
        guard let block = blocks.next() else {
            Issue.record("no packet")
            return
        }
        let read = try PictureLossIndication(block)
        #expect(read == loss)
    }

    /// RFC 5104 §4.3.1.
    @Test func `a full intra request round-trips`() throws {
        let entry = FullIntraRequest.Entry(media: SSRC(rawValue: 2), number: 7)
        let bytes = encoded(capacity: FullIntraRequest.encodedSize) {
            FullIntraRequest.encode(sender: SSRC(rawValue: 1), entry: entry, into: &$0)
        }
        #expect(bytes == hex("84ce0004 00000001 00000000 00000002 07000000"))
        var blocks = RTCPBlocks(bytes.span)
        guard let block = blocks.next() else {
            Issue.record("no packet")
            return
        }
        let request = try FullIntraRequest(block)
        let count = request.count
        let first = request[0]
        #expect(count == 1)
        #expect(first == entry)
    }
}

@Suite struct ReceiverEstimateTests {
    struct Row: CustomTestStringConvertible, Sendable {
        var testDescription: String
        var encoding: String
        var bitrate: UInt64
    }

    static let rows = [
        Row(testDescription: "nothing", encoding: "000000", bitrate: 0),
        Row(testDescription: "one bit a second", encoding: "000001", bitrate: 1),
        Row(testDescription: "exponent 3", encoding: "0e0000", bitrate: 131_072 << 3),
        Row(testDescription: "largest that fits", encoding: "bbffff", bitrate: 0x3ffff << 46),
        Row(testDescription: "saturated", encoding: "ffffff", bitrate: .max),
    ]

    @Test(arguments: rows)
    func `reads a bitrate`(_ row: Row) throws {
        let bytes = hex("8fce0005 00000001 00000000 52454d42 01" + row.encoding + "00000002")
        var blocks = RTCPBlocks(bytes.span)
        guard let block = blocks.next() else {
            Issue.record("no packet")
            return
        }
        let estimate = try ReceiverEstimatedBitrate(block)
        let bitrate = estimate.bitrate
        let source = estimate[0]
        #expect(bitrate == row.bitrate)
        #expect(source.rawValue == 2)
    }

    @Test(arguments: [0, 1, 262_143, 262_144, 1_500_000, 2_500_001, .max] as [UInt64])
    func `writes a bitrate rounded down`(bitrate: UInt64) throws {
        let sources = [SSRC(rawValue: 2), SSRC(rawValue: 3)]
        let size = ReceiverEstimatedBitrate.encodedSize(sources: 2)
        let bytes = encoded(capacity: size) {
            ReceiverEstimatedBitrate.encode(
                sender: SSRC(rawValue: 1),
                bitrate: bitrate,
                sources: sources.span,
                into: &$0
            )
        }
        #expect(bytes.count == size)
        var blocks = RTCPBlocks(bytes.span)
        guard let block = blocks.next() else {
            Issue.record("no packet")
            return
        }
        let read = try ReceiverEstimatedBitrate(block).bitrate
        #expect(read <= bitrate)
        #expect(Double(read) >= Double(bitrate) * (1 - 1 / 131_072))
    }

    @Test func `refuses other feedback and missing sources`() {
        let other = hex("8fce0004 00000001 00000000 58585858 00000000")
        let missing = hex("8fce0005 00000001 00000000 52454d42 02000000 00000002")
        #expect(
            error(in: other) { block throws(RTCPError) in _ = try ReceiverEstimatedBitrate(block) }
                == .type
        )
        #expect(
            error(in: missing) { block throws(RTCPError) in _ = try ReceiverEstimatedBitrate(block)
            }
                == .truncated
        )
    }
}
