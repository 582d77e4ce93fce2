import LoadPeer
import RTP
import Testing

@testable import SFU
@testable import WorkerInterface

/// One publisher, one viewer: the viewer receives one continuous stream.
struct ForwardingTests {
    /// Makes a call of a publisher (peer 0) and a viewer (peer 1) whose slot 0 shows its video.
    static func call() throws -> Call {
        var call = try Call()
        call.join(publications: [Media.audio(0), Media.video(1)])
        call.join(slots: [Media.slot(0), Media.slot(1, kind: .audio, ssrc: 0xbbbb)])
        call.connect(0)
        call.connect(1)
        call.bind(slot: 0, publication: 1)
        call.bind(slot: 1, publication: 0)
        return call
    }

    @Test func `connects, with GCM where both can`() throws {
        let call = try Self.call()
        let connected = call.peers.map { $0.peer.isConnected }
        let profiles = call.peers.map { $0.peer.profile }
        #expect(connected == [true, true])
        #expect(profiles == [.aeadAes128Gcm, .aeadAes128Gcm])
    }

    @Test func `rewrites only the stream's identifiers`() throws {
        var call = try Self.call()
        call.sendVideo(sequence: 1_000, pictureID: 77, isKeyframe: true)
        let bytes = try #require(call.peers[1].received.first)
        let packet = try Packet(bytes.span)
        let (ssrc, payloadType, marker) = (packet.ssrc, packet.payloadType, packet.marker)
        #expect(ssrc.rawValue == 0xaaaa)
        #expect(payloadType.rawValue == 120)
        #expect(marker)
        var found: [UInt8: [UInt8]] = [:]
        var elements = packet.extensions
        while let element = elements.next() {
            found[element.id] = Array(bytes[element.offset..<element.offset + element.length])
        }
        #expect(found[9] == Array("v0".utf8))
        #expect(found[5]?.count == 3)
        #expect(found[7] == [0, 1])
        #expect(found.count == 3)
        let sent = Media.vp8Payload(pictureID: 77, isKeyframe: true)
        let payload = Array(bytes[packet.headerLength...])
        #expect(payload == sent)
    }

    @Test func `a viewer starts with a keyframe and asks for one`() throws {
        var call = try Self.call()
        call.sendVideo(sequence: 1, pictureID: 1, isKeyframe: false)
        #expect(call.peers[1].received.isEmpty)
        call.bind(slot: 0, publication: nil)
        call.bind(slot: 0, publication: 1)
        call.run(milliseconds: 5)
        #expect(call.keyframeRequests(at: 0) == 1)
        call.sendVideo(sequence: 2, pictureID: 2, isKeyframe: true)
        #expect(call.peers[1].received.count == 1)
        #expect(
            call.takeEvents().contains(.started(SlotID(index: 0, generation: 1), subscription: 7))
        )
    }

    @Test func `a hundred viewers in one moment cost one keyframe request`() throws {
        var call = try Self.call()
        call.sendVideo(sequence: 1, pictureID: 1, isKeyframe: true)
        for index in 2..<102 {
            call.join(slots: [Media.slot(UInt32(index), ssrc: UInt32(index) << 8)])
            call.connect(index)
        }
        // The warm picture is too old.
        call.run(milliseconds: 16_000)
        call.peers[0].reports = []
        for index in 2..<102 { call.bind(slot: UInt32(index), publication: 1) }
        call.run(milliseconds: 300)
        #expect(call.keyframeRequests(at: 0) == 1)
        call.sendVideo(sequence: 2, pictureID: 2, isKeyframe: true)
        for index in 2..<102 { #expect(call.peers[index].received.count == 1) }
    }

    @Test func `a gate that closes holds from the next packet on, and closes no gap`() throws {
        var call = try Self.call()
        let video = PublicationID(index: 1, generation: 1)
        for step in 0..<10 {
            call.sendVideo(sequence: 100 + UInt16(step), pictureID: 1, isKeyframe: step == 0)
        }
        call.apply(.gate(video, open: false))
        call.apply(.fence(epoch: 5))
        #expect(
            call.takeEvents().contains {
                if case .fenced(5, _, 10) = $0 { true } else { false }
            }
        )
        for step in 10..<20 {
            call.sendVideo(sequence: 100 + UInt16(step), pictureID: 2, isKeyframe: step == 10)
        }
        #expect(call.peers[1].received.count == 10)
        call.apply(.gate(video, open: true))
        call.run(milliseconds: 500)
        call.sendVideo(sequence: 120, pictureID: 30, isKeyframe: true)
        let numbers = call.peers[1].received.map { UInt16($0[2]) << 8 | UInt16($0[3]) }
        #expect(numbers.count == 11)
        for (first, second) in zip(numbers, numbers.dropFirst()) { #expect(second == first &+ 1) }
        let statistics = call.statistics()
        #expect(statistics.drops[DropReason.gated.index] == 10)
        #expect(statistics.isBalanced)
    }

    @Test func `a lost packet is asked for, and its retransmission fills the hole`() throws {
        var call = try Self.call()
        call.sendVideo(sequence: 65_534, pictureID: 1, isKeyframe: true)
        call.sendVideo(sequence: 0, pictureID: 3, isKeyframe: false, rollover: 1)
        call.run(milliseconds: 8)
        #expect(call.nacks(at: 0) == [65_535])
        let original = Media.vp8Payload(pictureID: 2, isKeyframe: false)
        let rtx = Media.packet(
            payloadType: 97,
            sequence: 9,
            timestamp: 3_000,
            ssrc: 0x3333,
            elements: [(4, Array("1".utf8))],
            payload: UInt16(65_535).bytes + original
        )
        call.send(rtx, from: 0)
        let numbers = call.peers[1].received.map { UInt16($0[2]) << 8 | UInt16($0[3]) }
        #expect(numbers == [numbers[0], numbers[0] &+ 2, numbers[0] &+ 1])
        #expect(call.peers[1].undecryptable == 0)
        call.run(milliseconds: 300)
        #expect(call.nacks(at: 0) == [65_535])
    }

    @Test func `a viewer's NACK is answered by RTX with the same payload`() throws {
        var call = try Self.call()
        for step in 0..<5 as Range<UInt16> {
            call.sendVideo(sequence: 10 + step, pictureID: 50 + step, isKeyframe: step == 0)
        }
        let third = call.peers[1].received[2]
        let number = UInt16(third[2]) << 8 | UInt16(third[3])
        call.nack(number, from: 1, ssrc: 0xaaaa)
        let rtx = try #require(call.peers[1].received.last)
        let packet = try Packet(rtx.span)
        let (ssrc, payloadType, timestamp) = (packet.ssrc, packet.payloadType, packet.timestamp)
        #expect(ssrc.rawValue == 0xaaab)
        #expect(payloadType.rawValue == 124)
        let media = try Packet(third.span)
        let mediaTimestamp = media.timestamp
        #expect(timestamp == mediaTimestamp)
        let payload = Array(rtx[packet.headerLength...])
        let expected = number.bytes + third[media.headerLength...]
        #expect(payload == expected)
    }

    @Test func `a slot goes from one publisher to another without a seam`() throws {
        var call = try Self.call()
        call.join(publications: [Media.video(5)])
        call.connect(2)
        for step in 0..<5 as Range<UInt16> {
            call.sendVideo(sequence: 10 + step, pictureID: 100 + step, isKeyframe: step == 0)
            call.run(milliseconds: 33)
        }
        call.bind(slot: 0, publication: 5)
        call.sendVideo(sequence: 15, pictureID: 105, isKeyframe: false)
        call.sendVideo(from: 2, ssrc: 0x7777, sequence: 40_000, pictureID: 9_000, isKeyframe: false)
        call.run(milliseconds: 33)
        for step in 0..<5 as Range<UInt16> {
            call.sendVideo(
                from: 2,
                ssrc: 0x7777,
                sequence: 40_001 + step,
                pictureID: 9_001 + step,
                isKeyframe: step == 0
            )
            call.run(milliseconds: 33)
        }
        let packets = call.peers[1].received
        #expect(packets.count == 10)
        let numbers = packets.map { UInt16($0[2]) << 8 | UInt16($0[3]) }
        for (first, second) in zip(numbers, numbers.dropFirst()) { #expect(second == first &+ 1) }
        let pictures = try packets.map { bytes in
            let packet = try Packet(bytes.span)
            let descriptor = VP8Descriptor(packet.payload)
            return try #require(descriptor?.pictureID)
        }
        for (first, second) in zip(pictures, pictures.dropFirst()) {
            #expect(second == (first &+ 1) & 0x7fff)
        }
        let times = packets.map {
            UInt32($0[4]) << 24 | UInt32($0[5]) << 16 | UInt32($0[6]) << 8 | UInt32($0[7])
        }
        for (first, second) in zip(times, times.dropFirst()) {
            let step = Int32(bitPattern: second &- first)
            #expect(step > 0 && step < 9_000)
        }
    }

    static let profiles: [(publisher: UInt8, viewer: [UInt8], payloadType: UInt8?)] = [
        (0, [0], 100), (1, [0], 100), (0, [1], 100), (2, [0], nil), (2, [0, 4], 101),
        (0, [4, 0], 101), (4, [2, 1], nil),
    ]

    @Test(arguments: profiles)
    func `an H264 viewer gets what its decoder plays`(
        publisher: UInt8,
        viewer: [UInt8],
        payloadType: UInt8?
    ) {
        let formats = viewer.enumerated().map { position, profile in
            FormatMapping(
                format: MediaFormat(codec: .h264, profile: profile),
                payloadType: 100 + UInt8(position)
            )
        }
        let configuration = Media.slot(0, formats: formats)
        let mapping = configuration.mapping(for: MediaFormat(codec: .h264, profile: publisher))
        #expect(mapping?.payloadType == payloadType)
    }

    @Test func `padding between frames leaves no hole`() throws {
        var call = try Self.call()
        call.sendVideo(sequence: 1, pictureID: 1, isKeyframe: true)
        for step in 0..<40 as Range<UInt16> {
            var padding = Media.packet(
                payloadType: 96,
                sequence: 2 + step,
                timestamp: 0,
                ssrc: 0x2222,
                elements: [(4, Array("1".utf8))],
                payload: [0, 0, 0, 4]
            )
            padding[0] |= 0x20
            call.send(padding, from: 0)
        }
        call.sendVideo(sequence: 42, pictureID: 2, isKeyframe: false)
        let numbers = call.peers[1].received.map { UInt16($0[2]) << 8 | UInt16($0[3]) }
        #expect(numbers == [numbers[0], numbers[0] &+ 1])
        #expect(call.statistics().isBalanced)
    }

    @Test func `the highest live layer is forwarded, up at its keyframe, down when it dies`() throws
    {
        var call = try Call()
        call.join(publications: [Media.video(1, rids: ["q", "h", "f"])])
        call.join(slots: [Media.slot(0)])
        call.connect(0)
        call.connect(1)
        call.bind(slot: 0, publication: 1)
        for step in 0..<120 as Range<UInt16> {
            for (layer, rid) in ["q", "h", "f"].enumerated() {
                if rid == "f", !(30..<60).contains(step) { continue }
                call.sendVideo(
                    ssrc: 0x5000 + UInt32(layer),
                    rid: rid,
                    sequence: step,
                    pictureID: step,
                    isKeyframe: step % 10 == 0,
                    width: 320 << UInt16(layer)
                )
            }
            call.run(milliseconds: 33)
        }
        let changes = call.takeEvents().compactMap { event in
            if case .layerChanged(_, _, _, let to) = event { to?.rid } else { nil }
        }
        #expect(changes == ["q", "h", "f", "h"])
        let numbers = call.peers[1].received.map { UInt16($0[2]) << 8 | UInt16($0[3]) }
        for (first, second) in zip(numbers, numbers.dropFirst()) { #expect(second == first &+ 1) }
        #expect(call.statistics().isBalanced)
    }

    @Test func `a top layer that stops leaves viewers without a picture for half a second at most`()
        throws
    {
        var call = try Call()
        call.join(publications: [Media.video(1, rids: ["h", "f"])])
        call.join(slots: [Media.slot(0)])
        call.connect(0)
        call.connect(1)
        call.bind(slot: 0, publication: 1)
        var last = call.now
        var gap: Int64 = 0
        for step in 0..<150 as Range<UInt16> {
            for (layer, rid) in ["h", "f"].enumerated() where rid == "h" || step < 90 {
                let before = call.peers[1].received.count
                // The publisher answers a keyframe request with its next frame.
                let asked = call.keyframeRequests(at: 0)
                call.peers[0].reports = []
                call.sendVideo(
                    ssrc: 0x5000 + UInt32(layer),
                    rid: rid,
                    sequence: step,
                    pictureID: step,
                    isKeyframe: step % 60 == 0 || asked > 0,
                    width: 320 << UInt16(layer)
                )
                guard call.peers[1].received.count > before else { continue }
                if step > 60 { gap = max(gap, call.now.milliseconds(since: last)) }
                last = call.now
            }
            call.run(milliseconds: 33)
        }
        #expect(gap > 100)
        #expect(gap <= 600)
    }

    @Test func `the publisher hears of arrivals, losses and reports`() throws {
        var call = try Self.call()
        for step in 0..<60 as Range<UInt16> where step != 30 {
            call.sendVideo(sequence: step, pictureID: step, isKeyframe: step == 0)
            call.run(milliseconds: 33)
        }
        var feedback = 0
        var lost: Int32?
        for report in call.peers[0].reports {
            var blocks = RTCPBlocks(report.span)
            while let block = blocks.next() {
                if block.type == RTCPType.transportFeedback, block.count == 15 { feedback += 1 }
                if block.type == RTCPType.receiverReport {
                    let reports = try ReceptionReports(block)
                    for index in 0..<reports.count where reports[index].ssrc.rawValue == 0x2222 {
                        lost = reports[index].cumulativeLost
                    }
                }
            }
        }
        #expect(feedback >= 20)
        #expect(lost == 1)
    }

    @Test func `a silent peer is reconnecting, and then gone`() throws {
        var call = try Self.call()
        _ = call.takeEvents()
        let id = call.peers[1].id
        call.silent = [1]
        call.run(milliseconds: 8_100)
        #expect(call.takeEvents() == [.transport(id, .reconnecting)])
        call.run(milliseconds: 22_500)
        #expect(call.takeEvents() == [.transport(id, .disconnected(.timeout))])
        call.sendVideo(sequence: 1, pictureID: 1, isKeyframe: true)
        #expect(call.peers[1].received.isEmpty)
    }

    @Test func `sender reports keep lips in sync`() throws {
        var call = try Self.call()
        let theirNTP = NTPTime(unixNanoseconds: 1_000_000_000_000_000_000)
        call.sendVideo(sequence: 1, pictureID: 1, isKeyframe: true, timestamp: 90_000)
        let report = SenderReport(
            sender: SSRC(rawValue: 0x2222),
            ntp: theirNTP,
            rtpTimestamp: 90_000,
            packets: 1,
            octets: 1
        )
        call.sendRTCP(from: 0) { report.encode(into: &$0) }
        let captured = call.now
        call.run(milliseconds: 1_100)
        var found: SenderReport?
        for bytes in call.peers[1].reports {
            var blocks = RTCPBlocks(bytes.span)
            while let block = blocks.next() {
                if block.type == RTCPType.senderReport { found = try SenderReport(block) }
            }
        }
        let sent = try #require(found)
        let bytes = call.peers[1].received[0]
        let timestamp = try Packet(bytes.span).timestamp
        let passed = sent.ntp.nanoseconds(
            since: NTPTime(unixNanoseconds: captured.nanoseconds + 1_700_000_000_000_000_000)
        )
        let ticks = Int64(Int32(bitPattern: sent.rtpTimestamp &- timestamp))
        #expect(abs(ticks - passed * 90 / 1_000_000) <= 90)
    }
}
