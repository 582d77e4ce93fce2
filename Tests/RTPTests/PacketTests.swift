import TestSupport
import Testing

@testable import RTP

@Suite struct DatagramTests {
    @Test(arguments: 0...255 as ClosedRange<UInt8>)
    func `demultiplexes by the first byte (RFC 7983)`(first: UInt8) {
        let expected =
            switch first {
            case 0...3: "stun"
            case 20...63: "dtls"
            case 128...191: "rtp"
            default: "nothing"
            }
        #expect(kind([first, 96]) == expected)
        #expect(kind([first]) == "nothing")
    }

    @Test(arguments: [(191, "rtp"), (192, "rtcp"), (200, "rtcp"), (223, "rtcp"), (224, "rtp")])
    func `recognizes RTCP by its packet type (RFC 5761)`(second: UInt8, expected: String) {
        #expect(kind([0x80, second]) == expected)
    }

    private func kind(_ bytes: [UInt8]) -> String {
        switch Datagram(bytes.span) {
        case .stun: "stun"
        case .dtls: "dtls"
        case .rtp: "rtp"
        case .rtcp: "rtcp"
        case nil: "nothing"
        }
    }
}

@Suite struct PacketTests {
    struct Row: CustomTestStringConvertible, Sendable {
        var testDescription: String
        var bytes: [UInt8]
        var error: PacketError?
    }

    static let rows = [
        Row(testDescription: "nothing", bytes: [], error: .truncated),
        Row(testDescription: "smallest", bytes: hex("80600001 00000002 00000003"), error: nil),
        Row(
            testDescription: "version 1",
            bytes: hex("40600001 00000002 00000003"),
            error: .version
        ),
        Row(
            testDescription: "CSRC past the end",
            bytes: hex("81600001 00000002 00000003"),
            error: .truncated
        ),
        Row(
            testDescription: "extension past the end",
            bytes: hex("90600001 00000002 00000003 bede0001"),
            error: .truncated
        ),
        Row(
            testDescription: "padding of nothing",
            bytes: hex("a0600001 00000002 00000003 00"),
            error: .padding
        ),
        Row(
            testDescription: "padding into the header",
            bytes: hex("a0600001 00000002 00000003 02"),
            error: .padding
        ),
        Row(
            testDescription: "all padding",
            bytes: hex("a0600001 00000002 00000003 0002"),
            error: nil
        ),
    ]

    @Test(arguments: rows)
    func `accepts or refuses`(_ row: Row) {
        var caught: PacketError?
        do { _ = try Packet(row.bytes.span) } catch { caught = error }
        #expect(caught == row.error)
    }

    @Test func `reads the fields`() throws {
        let bytes = hex("b1e0abcd 01020304 05060708 0a0b0c0d bede0001 10ff0000 aabb0002")
        let packet = try Packet(bytes.span)
        let (marker, type) = (packet.marker, packet.payloadType)
        let (number, timestamp) = (packet.sequenceNumber, packet.timestamp)
        let (ssrc, payload) = (packet.ssrc, packet.payload.array)
        #expect(marker)
        #expect(type.rawValue == 96)
        #expect(number.rawValue == 0xabcd)
        #expect(timestamp == 0x0102_0304)
        #expect(ssrc.rawValue == 0x0506_0708)
        #expect(payload == [0xaa, 0xbb])
    }
}

@Suite struct HeaderExtensionsTests {
    struct Row: CustomTestStringConvertible, Sendable {
        var testDescription: String
        var profile: UInt16
        var block: String
        /// Id and length of each element.
        var elements: [[Int]]
    }

    static let rows = [
        Row(
            testDescription: "one byte",
            profile: 0xbede,
            block: "10aa 21bbcc 000000",
            elements: [[1, 1], [2, 2]]
        ),
        Row(
            testDescription: "padding between",
            profile: 0xbede,
            block: "10aa 0000 30cc 0000",
            elements: [[1, 1], [3, 1]]
        ),
        Row(
            testDescription: "id 15 ends it",
            profile: 0xbede,
            block: "10aa f0bb 20cc 0000",
            elements: [[1, 1]]
        ),
        Row(
            testDescription: "past the end",
            profile: 0xbede,
            block: "10aa 2fbb",
            elements: [[1, 1]]
        ),
        Row(
            testDescription: "two bytes",
            profile: 0x1000,
            block: "0100 0f02aabb 0000 0201cc",
            elements: [[1, 0], [15, 2], [2, 1]]
        ),
        Row(
            testDescription: "two bytes past the end",
            profile: 0x100f,
            block: "01ffaabb",
            elements: []
        ),
        Row(testDescription: "unknown profile", profile: 0x1234, block: "10aa0000", elements: []),
    ]

    @Test(arguments: rows)
    func `iterates over elements until one does not fit (RFC 8285)`(_ row: Row) {
        let block = hex(row.block)
        var extensions = HeaderExtensions(block: block.span, profile: row.profile, offset: 16)
        var elements: [[Int]] = []
        while let element = extensions.next() {
            elements.append([Int(element.id), element.length])
            #expect(element.offset >= 16)
            #expect(element.offset + element.length <= 16 + block.count)
        }
        #expect(elements == row.elements)
    }
}
