import RTP
import Testing

@testable import SFU

/// Audio and video stay synchronized at a viewer for hours, however the publisher's clocks run.
struct LipSyncTests {
    struct Row: Sendable, CustomTestStringConvertible {
        var name: String
        /// Drifts of the publisher's clocks in parts per million: the sampling clocks of audio and
        /// of video, and the wall clock of its sender reports.
        var audio = 0.0
        var video = 0.0
        var wall = 0.0

        var testDescription: String { name }
    }

    static let rows = [
        Row(name: "the whole device is fast", audio: 200, video: 200, wall: 200),
        Row(name: "they run apart", audio: 200, video: -200, wall: 100),
    ]

    /// A stream's time line at the viewer, by its last sender report.
    private struct Line {
        let clock: Double
        var report: (time: NTPTime, timestamp: UInt32)?

        /// Returns the play-out time of a sample, in seconds after `origin`.
        func time(of timestamp: UInt32, since origin: NTPTime) -> Double? {
            guard let report else { return nil }
            let ticks = Int32(bitPattern: timestamp &- report.timestamp)
            return Double(report.time.nanoseconds(since: origin)) / 1e9 + Double(ticks) / clock
        }
    }

    @Test(arguments: rows)
    func `G15 lips stay in sync through two hours of clock drift`(row: Row) throws {
        var call = try ForwardingTests.call()
        let start = call.now
        let origin = NTPTime(unixNanoseconds: 1_000_000_000_000_000_000)
        var lines: [UInt32: Line] = [0xaaaa: Line(clock: 90_000), 0xbbbb: Line(clock: 48_000)]
        var worst = 0.0
        var compared = 0
        for step in 0..<3_600 {
            let passed = Double(call.now.nanoseconds(since: start)) / 1e9
            let audio = Self.ticks(passed, 48_000, row.audio) &+ 77_000
            let video = Self.ticks(passed, 90_000, row.video) &+ 4_294_000_000
            let told = passed * (1 + row.wall / 1e6) * 1e9
            let wall = NTPTime(unixNanoseconds: 1_000_000_000_000_000_000 + Int64(told))
            try Self.send(UInt16(step), audio, video, at: wall, in: &call)
            call.run(milliseconds: 20)
            let sent = try Self.take(from: &call, into: &lines)
            if step >= 3, let heard = lines[0xbbbb]?.time(of: sent[0xbbbb] ?? 0, since: origin),
                let seen = lines[0xaaaa]?.time(of: sent[0xaaaa] ?? 0, since: origin)
            {
                worst = max(worst, abs(heard - seen))
                compared += 1
            }
            for _ in 0..<2 {
                call.now = call.now.advanced(milliseconds: 990)
                while call.core.expire(at: call.now, into: &call.output) {}
                call.settle()
            }
            call.check(from: 1)
        }
        #expect(compared > 3_500)
        #expect(worst < 0.01, "\(worst) s")
    }

    private static func ticks(_ seconds: Double, _ clock: Double, _ skew: Double) -> UInt32 {
        UInt32(truncatingIfNeeded: Int64(seconds * clock * (1 + skew / 1e6)))
    }

    /// Sends audio and video captured now, with the publisher's sender reports.
    static func send(
        _ number: UInt16,
        _ audio: UInt32,
        _ video: UInt32,
        at wall: NTPTime,
        in call: inout Call
    ) throws {
        let packet = Media.packet(
            payloadType: 111,
            sequence: number,
            timestamp: audio,
            ssrc: 0x1111,
            elements: [(4, Array("0".utf8))],
            payload: [0xfc, 1, 2, 3]
        )
        call.send(packet, from: 0)
        call.sendVideo(sequence: number, pictureID: number, isKeyframe: true, timestamp: video)
        for (ssrc, timestamp) in [(0x1111, audio), (0x2222, video)] as [(UInt32, UInt32)] {
            let report = SenderReport(
                sender: SSRC(rawValue: ssrc),
                ntp: wall,
                rtpTimestamp: timestamp,
                packets: 1,
                octets: 1
            )
            call.sendRTCP(from: 0) { report.encode(into: &$0) }
        }
    }

    /// Takes the viewer's input: its streams' reports, and the timestamps of received packets.
    private static func take(
        from call: inout Call,
        into lines: inout [UInt32: Line]
    ) throws -> [UInt32: UInt32] {
        for bytes in call.peers[1].reports {
            var blocks = RTCPBlocks(bytes.span)
            while let block = blocks.next() {
                guard block.type == RTCPType.senderReport else { continue }
                let report = try SenderReport(block)
                lines[report.sender.rawValue]?.report = (report.ntp, report.rtpTimestamp)
            }
        }
        var timestamps: [UInt32: UInt32] = [:]
        for bytes in call.peers[1].received {
            let packet = try Packet(bytes.span)
            timestamps[packet.ssrc.rawValue] = packet.timestamp
        }
        call.peers[1].reports = []
        call.peers[1].received = []
        call.peers[0].reports = []
        return timestamps
    }
}
