import RTP
import Testing

@testable import SFU
@testable import WorkerInterface

/// Attacks of an authenticated participant: nothing traps, and nobody else is harmed.
struct HostilePeerTests {
    @Test func `arrivals that make the largest feedback fit a datagram`() throws {
        var call = try ForwardingTests.call()
        call.sendVideo(sequence: 0, pictureID: 0, isKeyframe: true)
        call.run(milliseconds: 60)
        for half in 0..<2 as Range<UInt16> {
            for step in 0..<450 as Range<UInt16> {
                call.transportSequence = 2 * step + half + 1
                let sequence = 1 + half * 450 + step
                call.sendVideo(sequence: sequence, pictureID: sequence, isKeyframe: false)
            }
            call.now = call.now.advanced(milliseconds: 20)
        }
        call.peers[0].reports = []
        call.run(milliseconds: 200)
        var statuses = 0
        for report in call.peers[0].reports {
            #expect(report.count <= 1_200)
            var blocks = RTCPBlocks(report.span)
            while let block = blocks.next() {
                if block.type == 205, block.count == 15 { statuses += Int(block.bytes.u16(at: 14)) }
            }
        }
        #expect(statuses >= 900)
    }

    @Test func `the most reports that there can be fit their datagrams`() throws {
        var call = try Call()
        let sent = (0..<40 as Range<UInt32>).map { index in
            var video = Media.video(index, ssrc: 0x5000 + index)
            video.mid = "p\(index)"
            return video
        }
        let slots = (0..<40 as Range<UInt32>).map { Media.slot($0, ssrc: 0x9000 + 2 * $0) }
        call.join(publications: sent, slots: slots)
        call.reconfigure(0) { $0.cname = String(repeating: "c", count: 200) }
        call.connect(0)
        for index in 0..<40 as Range<UInt32> {
            call.bind(slot: index, publication: index)
            let report = SenderReport(
                sender: SSRC(rawValue: 0x5000 + index),
                ntp: NTPTime(unixNanoseconds: 1_700_000_000_000_000_000),
                rtpTimestamp: 0,
                packets: 1,
                octets: 1
            )
            call.sendVideo(ssrc: 0x5000 + index, sequence: 1, pictureID: 1, isKeyframe: true)
            call.sendRTCP(from: 0) { report.encode(into: &$0) }
        }
        call.peers[0].reports = []
        call.run(milliseconds: 1_100)
        var senders: Set<UInt32> = []
        for report in call.peers[0].reports {
            #expect(report.count <= 1_200)
            var blocks = RTCPBlocks(report.span)
            while let block = blocks.next() {
                if block.type == RTCPType.senderReport { senders.insert(block.bytes.u32(at: 4)) }
            }
        }
        #expect(senders.count == 40)
    }

    /// Echoes of our last report (LSR and DLSR): time of the report and the claimed delay, in
    /// milliseconds before now.
    static let echoes: [(name: String, sent: Int64, held: Int64, roundTrip: Int64?)] = [
        ("one like any", 80, 30, 50), ("at once", 20, 20, 0),
        ("before it was sent", -5_000, 0, nil), ("held for longer than there was", 80, 4_000, nil),
        ("a minute ago", 60_000, 0, nil), ("nine hours ago", 32_000_000, 0, nil),
        ("held for nine hours", 80, 32_000_000, nil),
    ]

    @Test(arguments: echoes.indices)
    func `C13 an impossible round-trip time is ignored`(row: Int) throws {
        var call = try ForwardingTests.call()
        call.run(milliseconds: 500)
        call.core.setWallClock(offsetNanoseconds: 1_700_000_000_000_000_000)
        let echo = Self.echoes[row]
        let then = call.core.transports.ntp(at: call.now.advanced(milliseconds: -echo.sent))
        var report = ReceptionReport(ssrc: SSRC(rawValue: 0xaaaa))
        report.lastSenderReport = then.compact
        report.delaySinceLastSenderReport = UInt32(echo.held * 65_536 / 1_000)
        let reports = [report]
        call.sendRTCP(from: 1) { output in
            ReceiverReport.encode(
                sender: SSRC(rawValue: 1),
                reports: reports.span,
                into: &output
            )
        }
        let found = call.core.transports[1].roundTripNanoseconds.map { ($0 + 500_000) / 1_000_000 }
        #expect(found == echo.roundTrip, "\(echo.name)")
    }

    @Test func `elements of a wrong length are not passed on`() throws {
        var call = try ForwardingTests.call()
        var packet: [UInt8] = [0x90, 111] + UInt16(1).bytes + UInt32(960).bytes
        packet += UInt32(0x1111).bytes
        var block: [UInt8] = [4, 1, 0x30]
        for id in [1, 2, 3] as [UInt8] { block += [id, 200] + Array(repeating: 0xff, count: 200) }
        while block.count % 4 != 0 { block.append(0) }
        packet += [0x10, 0x00] + UInt16(block.count / 4).bytes + block + [1, 2, 3]
        call.send(packet, from: 0)
        let bytes = try #require(call.peers[1].received.first)
        var elements = try Packet(bytes.span).extensions
        var found: [UInt8: Int] = [:]
        while let element = elements.next() { found[element.id] = element.length }
        #expect(found == [9: 2, 5: 3, 7: 2])
    }

    @Test func `new encodings on an m-line are no layers before their first packet`() throws {
        var call = try Call()
        call.join(publications: [Media.audio(0), Media.video(1, rids: ["a"])])
        call.join(slots: [Media.slot(0)])
        call.connect(0)
        call.connect(1)
        call.bind(slot: 0, publication: 1)
        for step in 0..<20 as Range<UInt16> {
            call.sendVideo(rid: "a", sequence: step, pictureID: step, isKeyframe: step == 0)
            call.run(milliseconds: 33)
        }
        call.reconfigure(0) { configuration in
            configuration.publications.remove(at: 0)
            configuration.publications[0].encodings = [EncodingConfiguration(rid: "b")]
        }
        call.run(milliseconds: 600)
        call.sendVideo(
            ssrc: 0x4444,
            rid: "b",
            sequence: 9,
            pictureID: 9,
            isKeyframe: true
        )
        #expect(call.peers[1].received.count == 21)
        #expect(call.numbers(at: 1).isContiguous)
    }

    @Test func `a retransmission of an ancient packet restarts nothing`() throws {
        var call = try ForwardingTests.call()
        for step in 0..<10 as Range<UInt16> {
            call.sendVideo(sequence: 20_000 + step, pictureID: step, isKeyframe: step == 0)
        }
        for (index, original) in ([1, 5_000, 40_000, 19_000] as [UInt16]).enumerated() {
            let rtx = Media.packet(
                payloadType: 97,
                sequence: UInt16(index),
                timestamp: 0,
                ssrc: 0x3333,
                elements: [(4, Array("1".utf8))],
                payload: original.bytes + Media.vp8Payload(pictureID: 99, isKeyframe: false)
            )
            call.send(rtx, from: 0)
        }
        call.sendVideo(sequence: 20_010, pictureID: 10, isKeyframe: false)
        #expect(call.peers[1].received.count == 11)
        #expect(call.numbers(at: 1).isContiguous)
        let statistics = call.statistics()
        #expect(statistics.drops[DropReason.tooOld.index] == 4)
        #expect(statistics.isBalanced)
    }

    @Test func `a stream that another SSRC replaced cannot be replayed`() throws {
        var call = try ForwardingTests.call()
        var captured: [[UInt8]] = []
        call.loses = { toCore, datagram in
            if toCore, datagram[0] >> 6 == 2, datagram[1] & 0x7f == 96 { captured.append(datagram) }
            return false
        }
        for step in 0..<5 as Range<UInt16> {
            call.sendVideo(ssrc: 0x2222, sequence: step, pictureID: step, isKeyframe: step == 0)
        }
        call.sendVideo(ssrc: 0x2223, sequence: 77, pictureID: 6, isKeyframe: true)
        let count = call.peers[1].received.count
        call.loses = { _, _ in false }
        for datagram in captured { call.inject(datagram, on: call.peers[0].path) }
        call.settle()
        #expect(call.peers[1].received.count == count)
        #expect(call.statistics().drops[DropReason.srtpReplay.index] == 6)
        call.sendVideo(ssrc: 0x2223, sequence: 78, pictureID: 7, isKeyframe: false)
        #expect(call.numbers(at: 1).isContiguous)
        #expect(call.peers[1].received.count == count + 1)
    }

    @Test func `a hundred thousand SSRCs take no room from the real ones`() throws {
        var call = try ForwardingTests.call()
        call.sendVideo(sequence: 1, pictureID: 1, isKeyframe: true)
        let before = call.occupancy
        for ssrc in 0..<Noise.count(100_000) {
            let packet = Media.packet(
                payloadType: 96,
                sequence: 7,
                timestamp: 0,
                ssrc: 0x8000_0000 + UInt32(ssrc),
                elements: [(4, Array("x".utf8))],
                payload: [1, 2, 3]
            )
            call.send(packet, from: 0)
        }
        #expect(call.occupancy == before)
        call.sendVideo(sequence: 2, pictureID: 2, isKeyframe: false)
        // The rate of new SSRCs is limited, the peer's own included.
        call.now = call.now.advanced(milliseconds: 1_000)
        call.sendVideo(ssrc: 0x2299, sequence: 9, pictureID: 3, isKeyframe: true)
        #expect(call.numbers(at: 1).isContiguous)
        #expect(call.peers[1].received.count == 3)
        #expect(call.statistics().isBalanced)
    }

    @Test func `forged, replayed and malformed RTCP is accounted for`() throws {
        var call = try ForwardingTests.call()
        var captured: [UInt8] = []
        call.loses = { toCore, datagram in
            if toCore, (200...207).contains(datagram[1]) { captured = datagram }
            return false
        }
        call.nack(7, from: 1, ssrc: 0xaaaa)
        call.loses = { _, _ in false }
        let path = call.peers[1].path
        call.inject(captured, on: path)
        captured[captured.count - 1] ^= 0x40
        call.inject(captured, on: path)
        call.inject([0x80, 200, 0, 0], on: path)
        call.settle()
        let statistics = call.statistics()
        #expect(statistics.drops[DropReason.malformedRTCP.index] == 1)
        #expect(statistics.drops[DropReason.srtcpReplay.index] == 1)
        #expect(statistics.drops[DropReason.srtcpAuthentication.index] == 1)
        #expect(statistics.isBalanced)
    }

    /// Reactivating a camera on an inactive m-line once left a timer that was always due.
    @Test func `holes between retransmissions of a stream that was never seen are not asked for`()
        throws
    {
        var call = try ForwardingTests.call()
        for (index, original) in ([100, 110, 120] as [UInt16]).enumerated() {
            let rtx = Media.packet(
                payloadType: 97,
                sequence: UInt16(index),
                timestamp: 0,
                ssrc: 0x3333,
                elements: [(4, Array("1".utf8))],
                payload: original.bytes + Media.vp8Payload(pictureID: 99, isKeyframe: false)
            )
            call.send(rtx, from: 0)
        }
        call.run(milliseconds: 50)
        #expect(call.nacks(at: 0) == [])
        call.sendVideo(sequence: 130, pictureID: 1, isKeyframe: true)
        call.sendVideo(sequence: 132, pictureID: 3, isKeyframe: false)
        call.run(milliseconds: 8)
        #expect(call.nacks(at: 0) == [131])
        #expect(call.numbers(at: 1).count == 2)
    }

    @Test func `a gap too large for retransmission leads to a keyframe request`() throws {
        var call = try ForwardingTests.call()
        call.sendVideo(sequence: 1, pictureID: 1, isKeyframe: true)
        call.run(milliseconds: 500)
        call.peers[0].reports = []
        call.sendVideo(sequence: 700, pictureID: 700, isKeyframe: false)
        call.run(milliseconds: 10)
        #expect(call.keyframeRequests(at: 0) == 1)
        #expect(call.nacks(at: 0) == [])
    }
}
