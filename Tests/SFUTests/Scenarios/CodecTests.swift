import RTP
import TestSupport
import Testing

@testable import SFU
@testable import WorkerInterface

/// Forwarding of each codec, and negotiation with peers that want something else.
struct CodecTests {
    static func format(_ codec: Codec, _ payloadType: UInt8) -> FormatMapping {
        FormatMapping(
            format: MediaFormat(codec: codec),
            payloadType: payloadType,
            feedback: [.nack, .pictureLoss]
        )
    }

    /// Makes a publisher and a viewer of one codec, with the dependency descriptor negotiated.
    static func call(_ codec: Codec) throws -> Call {
        var call = try Call()
        var published = Media.video(1, ssrc: 0x2222)
        published.formats = [format(codec, 45)]
        published.extensions[.dependencyDescriptor] = 12
        var other = published
        other.id.index = 2
        var slot = Media.slot(0, formats: [format(codec, 46)])
        slot.extensions[.dependencyDescriptor] = 13
        call.join(publications: [published])
        call.join(publications: [other])
        call.join(slots: [slot])
        for index in 0..<3 { call.connect(index) }
        call.bind(slot: 0, publication: 1)
        return call
    }

    /// A codec's independently decodable packet, and one that is not.
    static let starts: [(codec: Codec, start: [UInt8], delta: [UInt8])] = [
        (
            .vp8, Media.vp8Payload(pictureID: 1, isKeyframe: true),
            Media.vp8Payload(pictureID: 2, isKeyframe: false)
        ),
        (.vp9, [0x88, 0x81, 0x23, 1, 2], [0xc8, 0x81, 0x24, 1, 2]),
        (.h264, [0x67, 0x42, 0xe0, 0x1f, 0x8c, 0x8d, 0x40], [0x41, 1, 2, 3]),
        (.av1, [0x18, 0x0a, 1, 2], [0x10, 0x32, 1, 2]),
    ]

    @Test(arguments: starts)
    func `a viewer begins with an independently decodable picture`(
        codec: Codec,
        start: [UInt8],
        delta: [UInt8]
    ) throws {
        var call = try Self.call(codec)
        for (sequence, payload) in [delta, start, delta].enumerated() {
            call.send(
                Media.packet(
                    payloadType: 45,
                    sequence: UInt16(sequence),
                    timestamp: UInt32(sequence) * 3_000,
                    ssrc: 0x2222,
                    elements: [(4, Array("1".utf8))],
                    payload: payload
                ),
                from: 0
            )
        }
        #expect(call.peers[2].received.count == 2)
        #expect(call.statistics().drops[DropReason.awaitingKeyframe.index] == 1)
    }

    @Test func `AV1 frame numbers go on over a change of slot`() throws {
        var call = try Self.call(.av1)
        var numbers: [UInt16] = []
        for step in 0..<10 as Range<UInt16> {
            if step == 5 { call.bind(slot: 0, publication: 2) }
            let number = (step < 5 ? 65_533 : 9_000) &+ step
            call.send(
                Media.packet(
                    payloadType: 45,
                    sequence: step,
                    timestamp: UInt32(step) * 3_000,
                    ssrc: 0x2222,
                    elements: [(4, Array("1".utf8)), (12, [0xc0] + number.bytes)],
                    payload: step % 5 == 0 ? [0x18, 0x0a, 1, 2] : [0x10, 0x32, 1, 2]
                ),
                from: step < 5 ? 0 : 1
            )
            call.run(milliseconds: 33)
        }
        for bytes in call.peers[2].received {
            var elements = try Packet(bytes.span).extensions
            while let element = elements.next() {
                if element.id == 13 { numbers.append(bytes.u16(element.offset + 1)) }
            }
        }
        #expect(numbers.count == 10)
        #expect(numbers.isContiguous)
    }

    @Test func `a VP8 viewer gets no dependency descriptor`() throws {
        var call = try Self.call(.vp8)
        call.send(
            Media.packet(
                payloadType: 45,
                sequence: 1,
                timestamp: 0,
                ssrc: 0x2222,
                elements: [(4, Array("1".utf8)), (12, [0xc0, 0, 1])],
                payload: Media.vp8Payload(pictureID: 1, isKeyframe: true)
            ),
            from: 0
        )
        let bytes = try #require(call.peers[2].received.first)
        var elements = try Packet(bytes.span).extensions
        while let element = elements.next() { #expect(element.id != 13) }
    }

    @Test func `an AV1 structure tells the size`() throws {
        var call = try Self.call(.av1)
        let descriptors = Samples.files("corpora/dependency_descriptor").map(\.bytes)
        for descriptor in descriptors where descriptor.count <= 255 {
            var info = PacketInfo()
            info.dependencyDescriptor.length = UInt8(descriptor.count)
            let size = info.inspect(descriptor.span, payload: [0x18].span, codec: .av1)
            var structure: DependencyStructure?
            let isWhole = FrameDependencies(descriptor.span, structure: &structure) != nil
            let starts = descriptor.first.map { $0 & 0x80 != 0 } ?? false
            #expect(size == (isWhole && starts ? structure?.resolutions.last : nil))
        }
        _ = call.takeEvents()
    }

    /// Viewers with and without RED; the payload type and bytes that each receives.
    static let redViewers:
        [(name: String, formats: [FormatMapping], first: UInt8, bytes: [UInt8])] =
            [
                ("without RED", [format(.opus, 109)], 109, [7, 8, 9]),
                (
                    "with RED", [format(.red, 64), format(.opus, 109)], 64,
                    [0x80 | 109, 0x03, 0xc0, 2, 109, 5, 6, 7, 8, 9]
                ),
            ]

    @Test(arguments: redViewers)
    func `RED goes to those who have it, and Opus to the others`(
        name: String,
        formats: [FormatMapping],
        first: UInt8,
        bytes: [UInt8]
    ) throws {
        var call = try Call()
        var audio = Media.audio(0)
        audio.formats = [Self.format(.red, 63), Media.opus]
        call.join(publications: [audio])
        call.join(slots: [Media.slot(0, kind: .audio, formats: formats)])
        call.connect(0)
        call.connect(1)
        call.bind(slot: 0, publication: 0)
        call.send(
            Media.packet(
                payloadType: 63,
                sequence: 1,
                timestamp: 960,
                ssrc: 0x1111,
                payload: [0x80 | 111, 0x03, 0xc0, 2, 111, 5, 6, 7, 8, 9]
            ),
            from: 0
        )
        let sent = try #require(call.peers[1].received.first)
        let packet = try Packet(sent.span)
        let (payloadType, header) = (packet.payloadType.rawValue, packet.headerLength)
        #expect(payloadType == first)
        #expect(Array(sent[header...]) == bytes)
    }

    @Test(arguments: redViewers)
    func `RED is sent again as it was sent at first`(
        name: String,
        formats: [FormatMapping],
        first: UInt8,
        bytes: [UInt8]
    ) throws {
        var call = try Call()
        var audio = Media.audio(0)
        audio.formats = [Self.format(.red, 63), Media.opus]
        call.join(publications: [audio])
        let repeated = formats.map { format in
            var format = format
            format.rtxPayloadType = 98
            return format
        }
        var slot = Media.slot(0, kind: .audio, formats: repeated)
        slot.rtxSSRC = SSRC(rawValue: 0xaaab)
        call.join(slots: [slot])
        call.connect(0)
        call.connect(1)
        call.bind(slot: 0, publication: 0)
        let packet = Media.packet(
            payloadType: 63,
            sequence: 1,
            timestamp: 960,
            ssrc: 0x1111,
            payload: [0x80 | 111, 0x03, 0xc0, 2, 111, 5, 6, 7, 8, 9]
        )
        call.send(packet, from: 0)
        let number = try #require(call.peers[1].received.first).u16(2)
        call.nack(number, from: 1, ssrc: 0xaaaa)
        let again = try #require(call.peers[1].received.last { $0.ssrc == 0xaaab })
        let header = try Packet(again.span).headerLength
        #expect(Array(again[header...]) == number.bytes + bytes)
    }

    @Test func `a viewer without RTX gets the same bits again, and others never`() throws {
        var call = try Call()
        call.join(publications: [Media.video(1)])
        call.join(slots: [Media.slot(0, formats: [Self.format(.vp8, 121)])])
        call.connect(0)
        call.connect(1)
        call.bind(slot: 0, publication: 1)
        var datagrams: [[UInt8]] = []
        call.loses = { toCore, datagram in
            if !toCore, !(192...223).contains(datagram[1]), datagram[0] >> 6 == 2 {
                datagrams.append(datagram)
            }
            return false
        }
        for step in 0..<4 as Range<UInt16> {
            call.sendVideo(sequence: step, pictureID: step, isKeyframe: step == 0)
        }
        let number = datagrams[2].u16(2)
        call.nack(number, from: 1, ssrc: 0xaaaa)
        #expect(datagrams.count == 5)
        #expect(datagrams.last == datagrams[2])
        call.reconfigure(1) { $0.slots[0].extensions[.mid] = 3 }
        call.sendVideo(sequence: 4, pictureID: 4, isKeyframe: false)
        call.nack(number, from: 1, ssrc: 0xaaaa)
        #expect(datagrams.count == 6)
        call.nack(number &+ 2, from: 1, ssrc: 0xaaaa)
        #expect(datagrams.count == 7)
        #expect(datagrams[6] == datagrams[5])
    }

    @Test func `feedback to a peer without reduced size begins with a report and a name`() throws {
        var call = try Call()
        call.join(publications: [Media.video(1)], reducedSize: false)
        call.join(slots: [Media.slot(0)])
        call.connect(0)
        call.connect(1)
        call.bind(slot: 0, publication: 1)
        call.sendVideo(sequence: 1, pictureID: 1, isKeyframe: false)
        call.sendVideo(sequence: 4, pictureID: 4, isKeyframe: false)
        call.run(milliseconds: 500)
        #expect(!call.nacks(at: 0).isEmpty)
        #expect(call.keyframeRequests(at: 0) > 0)
        for report in call.peers[0].reports {
            // The leading report has no blocks and eight bytes.
            let length = 4 + 4 * Int(report.u16(2))
            #expect([RTCPType.senderReport, RTCPType.receiverReport].contains(report[1]))
            #expect(report[length + 1] == RTCPType.sourceDescription)
        }
    }
}
