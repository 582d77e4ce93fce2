import TestSupport
import Testing

@testable import RTP

/// One named line of a table.
struct RTCPRow: CustomTestStringConvertible, Sendable {
    var testDescription: String
    var bytes: [UInt8]
    /// Type of each packet that the iteration yields.
    var types: [UInt8]
    var isMalformed: Bool
}

@Suite struct RTCPBlocksTests {
    static let rows = [
        RTCPRow(testDescription: "nothing", bytes: [], types: [], isMalformed: false),
        RTCPRow(testDescription: "three bytes", bytes: hex("80c900"), types: [], isMalformed: true),
        RTCPRow(
            testDescription: "reduced size (RFC 5506)",
            bytes: hex("81ce0002 00000001 00000002"),
            types: [206],
            isMalformed: false
        ),
        RTCPRow(
            testDescription: "report and description",
            bytes: hex("80c90001 00000001 81ca0002 00000001 01016100"),
            types: [201, 202],
            isMalformed: false
        ),
        RTCPRow(
            testDescription: "second too long",
            bytes: hex("80c90001 00000001 81ca0003 00000001 01016100"),
            types: [201],
            isMalformed: true
        ),
        RTCPRow(
            testDescription: "second of version 1",
            bytes: hex("80c90001 00000001 41ca0002 00000001 01016100"),
            types: [201],
            isMalformed: true
        ),
        RTCPRow(
            testDescription: "empty packets",
            bytes: hex("80c90000 80cb0000"),
            types: [201, 203],
            isMalformed: false
        ),
        RTCPRow(
            testDescription: "padding of nothing",
            bytes: hex("a0c90001 00000000"),
            types: [],
            isMalformed: true
        ),
        RTCPRow(
            testDescription: "padding into the header",
            bytes: hex("a0c90001 00000005"),
            types: [],
            isMalformed: true
        ),
        RTCPRow(
            testDescription: "padding without a byte to count it",
            bytes: hex("a0c90000"),
            types: [],
            isMalformed: true
        ),
    ]

    @Test(arguments: rows)
    func `iterates over a compound until a packet does not fit`(_ row: RTCPRow) {
        var blocks = RTCPBlocks(row.bytes.span)
        var types: [UInt8] = []
        while let block = blocks.next() { types.append(block.type) }
        let isMalformed = blocks.isMalformed
        #expect(types == row.types)
        #expect(isMalformed == row.isMalformed)
    }

    @Test func `excludes padding`() {
        let bytes = hex("a1ce0003 00000001 00000002 00000004")
        var blocks = RTCPBlocks(bytes.span)
        let count = blocks.next()?.bytes.count
        #expect(count == 12)
    }
}

@Suite struct ReportTests {
    /// RFC 3550 §6.4.1, with one report block.
    static let senderReport = hex(
        """
        81c8000c 11223344 e5a1b2c3 80000000 00015f90 00000064 00002710
        55667788 40fffffe 0001ffff 00000020 b2c38000 00010000
        """
    )

    @Test func `reads a sender report and its block`() throws {
        var blocks = RTCPBlocks(Self.senderReport.span)
        guard let block = blocks.next() else {
            Issue.record("no packet")
            return
        }
        let report = try SenderReport(block)
        #expect(report.sender.rawValue == 0x1122_3344)
        #expect(report.ntp.rawValue == 0xe5a1_b2c3_8000_0000)
        #expect(report.ntp.compact == 0xb2c3_8000)
        #expect(report.rtpTimestamp == 90_000)
        #expect(report.packets == 100)
        #expect(report.octets == 10_000)
        let reports = try ReceptionReports(block)
        let count = reports.count
        #expect(count == 1)
        let expected = ReceptionReport(
            ssrc: SSRC(rawValue: 0x5566_7788),
            fractionLost: 64,
            cumulativeLost: -2,
            highestSequence: 0x1ffff,
            jitter: 32,
            lastSenderReport: 0xb2c3_8000,
            delaySinceLastSenderReport: 65_536
        )
        let first = reports[0]
        #expect(first == expected)
    }

    @Test func `a sender report is written as it was read`() throws {
        let report = SenderReport(
            sender: SSRC(rawValue: 1),
            ntp: NTPTime(rawValue: 2),
            rtpTimestamp: 3,
            packets: 4,
            octets: 5
        )
        let bytes = encoded(capacity: SenderReport.encodedSize) { report.encode(into: &$0) }
        #expect(
            bytes == hex("80c80006 00000001 0000000000000002 00000003 00000004 00000005")
        )
        var blocks = RTCPBlocks(bytes.span)
        guard let block = blocks.next() else {
            Issue.record("no packet")
            return
        }
        let read = try SenderReport(block)
        #expect(read == report)
    }

    @Test(arguments: [0, 1, 31])
    func `writes receiver reports`(count: Int) throws {
        let reports = (0..<count).map { index in
            ReceptionReport(
                ssrc: SSRC(rawValue: UInt32(index)),
                fractionLost: UInt8(index),
                cumulativeLost: Int32(index) * 1_000_000,
                highestSequence: 7,
                jitter: 8,
                lastSenderReport: 9,
                delaySinceLastSenderReport: 10
            )
        }
        let size = ReceiverReport.encodedSize(reports: count)
        let bytes = encoded(capacity: size) {
            ReceiverReport.encode(sender: SSRC(rawValue: 6), reports: reports.span, into: &$0)
        }
        #expect(bytes.count == size)
        var blocks = RTCPBlocks(bytes.span)
        guard let block = blocks.next() else {
            Issue.record("no packet")
            return
        }
        let read = try ReceptionReports(block)
        let list = (0..<read.count).map { read[$0] }
        let clamped = reports.map { report in
            var report = report
            report.cumulativeLost = min(report.cumulativeLost, 0x7f_ffff)
            return report
        }
        #expect(list == clamped)
    }

    @Test func `refuses counts that do not fit`() {
        var bytes = Self.senderReport
        bytes[0] = 0x82
        #expect(
            error(in: bytes) { block throws(RTCPError) in _ = try ReceptionReports(block) }
                == .truncated
        )
        #expect(
            error(in: hex("9fc90001 00000001")) { block throws(RTCPError) in
                _ = try ReceptionReports(block)
            } == .truncated
        )
        #expect(
            error(in: hex("80cb0000")) { block throws(RTCPError) in
                _ = try ReceptionReports(block)
            } == .type
        )
    }
}

/// Returns the error that `body` throws for the first packet of `bytes`.
func error(
    in bytes: [UInt8],
    _ body: (RTCPBlock) throws(RTCPError) -> Void
) -> RTCPError? {
    var blocks = RTCPBlocks(bytes.span)
    guard let block = blocks.next() else { return nil }
    do throws(RTCPError) {
        try body(block)
        return nil
    } catch {
        return error
    }
}

@Suite struct SourceTests {
    @Test(arguments: ["", "a", "ab", "abc", "abcd", "abcde", String(repeating: "x", count: 255)])
    func `a source description round-trips`(name: String) throws {
        let size = SourceDescription.encodedSize(cnameLength: name.utf8.count)
        let text = Array(name.utf8)
        let bytes = encoded(capacity: size) {
            SourceDescription.encode(ssrc: SSRC(rawValue: 9), cname: text.span, into: &$0)
        }
        #expect(bytes.count == size)
        #expect(bytes.count.isMultiple(of: 4))
        #expect(bytes.last == 0)
        var blocks = RTCPBlocks(bytes.span)
        guard let block = blocks.next() else {
            Issue.record("no packet")
            return
        }
        let description = try SourceDescription(block)
        let ssrc = description.ssrc
        let read = description.cname.array
        #expect(ssrc.rawValue == 9)
        #expect(read == text)
    }

    @Test func `a goodbye names its sources`() throws {
        let sources = [SSRC(rawValue: 1), SSRC(rawValue: 0xffff_ffff)]
        let bytes = encoded { Goodbye.encode(sources.span, into: &$0) }
        #expect(bytes == hex("82cb0002 00000001 ffffffff"))
        var blocks = RTCPBlocks(bytes.span)
        guard let block = blocks.next() else {
            Issue.record("no packet")
            return
        }
        let goodbye = try Goodbye(block)
        let read = (0..<goodbye.count).map { goodbye[$0] }
        #expect(read == sources)
        #expect(
            error(in: hex("83cb0002 00000001 ffffffff")) { block throws(RTCPError) in
                _ = try Goodbye(block)
            } == .truncated
        )
    }
}
