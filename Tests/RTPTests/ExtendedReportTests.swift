import RTP
import TestSupport
import Testing

/// Extended reports (RFC 3611), by which receivers learn their round-trip time.
struct ExtendedReportTests {
    struct Row: CustomTestStringConvertible, Sendable {
        var testDescription: String
        var bytes: [UInt8]
        /// The receiver and its clock.
        var found: (UInt32, UInt64)?
    }

    static let rows = [
        Row(
            testDescription: "alone",
            bytes: hex("80cf0004 00000007 04000002 e5a1b2c3 80000000"),
            found: (7, 0xe5a1_b2c3_8000_0000)
        ),
        Row(
            testDescription: "after another block and an unknown one",
            bytes: hex("80cf0007 00000007 05000000 63000001 12345678 04000002 e5a1b2c3 80000000"),
            found: (7, 0xe5a1_b2c3_8000_0000)
        ),
        Row(
            testDescription: "the first of two",
            bytes: hex("80cf0007 00000007 04000002 0000000100000002 04000002 0000000300000004"),
            found: (7, 0x1_0000_0002)
        ),
        Row(testDescription: "no block at all", bytes: hex("80cf0001 00000007"), found: nil),
        Row(
            testDescription: "no clock",
            bytes: hex("80cf0002 00000007 04000002"),
            found: nil
        ),
        Row(
            testDescription: "half a clock",
            bytes: hex("80cf0003 00000007 04000002 e5a1b2c3"),
            found: nil
        ),
        Row(
            testDescription: "a block before it that is longer than the packet",
            bytes: hex("80cf0005 00000007 63ffffff 04000002 e5a1b2c3 80000000"),
            found: nil
        ),
        Row(
            testDescription: "a clock in a block of no length",
            bytes: hex("80cf0004 00000007 04000000 05000001 80000000"),
            found: nil
        ),
        Row(testDescription: "no sender", bytes: hex("80cf0000"), found: nil),
        Row(
            testDescription: "another packet",
            bytes: hex("80c90004 00000007 04000002 e5a1b2c3 80000000"),
            found: nil
        ),
    ]

    @Test(arguments: rows)
    func `finds a receiver's clock`(_ row: Row) {
        var blocks = RTCPBlocks(row.bytes.span)
        guard let block = blocks.next() else {
            Issue.record("no packet")
            return
        }
        let time = try? ReceiverReferenceTime(block)
        #expect(time?.sender.rawValue == row.found?.0)
        #expect(time?.ntp.rawValue == row.found?.1)
    }

    @Test func `a receiver's clock is written as it is read`() {
        let time = ReceiverReferenceTime(
            sender: SSRC(rawValue: 7),
            ntp: NTPTime(rawValue: 0xe5a1_b2c3_8000_0000)
        )
        let bytes = encoded(capacity: ReceiverReferenceTime.encodedSize) { time.encode(into: &$0) }
        #expect(bytes == Self.rows[0].bytes)
    }

    @Test func `each receiver finds its own answer`() throws {
        let answers = [
            LastReceiverTime(receiver: SSRC(rawValue: 7), reference: 0xb2c3_8000, delay: 65_536),
            LastReceiverTime(receiver: SSRC(rawValue: 8), reference: 1, delay: 2),
        ]
        let bytes = encoded(capacity: LastReceiverTime.encodedSize(answers: 2)) {
            LastReceiverTime.encode(sender: SSRC(rawValue: 5), answers: answers.span, into: &$0)
        }
        #expect(
            bytes
                == hex("80cf0008 00000005 05000006 00000007 b2c38000 00010000")
                + hex("00000008 00000001 00000002")
        )
        var blocks = RTCPBlocks(bytes.span)
        guard let block = blocks.next() else {
            Issue.record("no packet")
            return
        }
        for answer in answers {
            let found = try LastReceiverTime.find(for: answer.receiver, in: block)
            #expect(found == answer)
        }
        let none = try LastReceiverTime.find(for: SSRC(rawValue: 9), in: block)
        #expect(none == nil)
    }

    @Test(
        arguments: [
            // The block claims three answers, of which one and a half are there.
            ("80cf0006 00000005 05000009 00000007 00000001 00000002 00000008", 7, true),
            ("80cf0006 00000005 05000009 00000007 00000001 00000002 00000008", 8, false),
            // The block is empty, and what follows it is no answer.
            ("80cf0005 00000005 05000000 00000007 00000001 00000002", 7, false),
        ] as [(String, UInt32, Bool)]
    )
    func `answers end with their block and with the packet`(
        bytes: String,
        receiver: UInt32,
        isFound: Bool
    ) throws {
        let packet = hex(bytes)
        var blocks = RTCPBlocks(packet.span)
        guard let block = blocks.next() else {
            Issue.record("no packet")
            return
        }
        let found = try LastReceiverTime.find(for: SSRC(rawValue: receiver), in: block)
        #expect((found != nil) == isFound)
    }
}
