import RTP
import TestSupport
import Testing

@testable import RTPForward
@testable import Recording
@testable import SFU
@testable import WorkerInterface

/// Plain RTP output: the stream that other tools receive.
struct PlainRTPSenderTests {
    private static let ssrc = SSRC(rawValue: 0x0102_0304)

    private static func sender(
        _ codec: Codec = .vp8,
        from number: UInt16 = 65_534
    ) -> PlainRTPSender {
        let line = RTPForwardTarget.Line(
            kind: codec.kind,
            address: Address(ipv4: 0x7f00_0001, port: 5_000),
            codec: codec,
            ssrc: ssrc,
            firstNumber: number,
            firstTimestamp: 1_000
        )
        return PlainRTPSender(line, cname: "str-1")
    }

    /// A publisher with late and lost packets, and the plain RTP sent for them.
    private struct Story {
        var packets: Packets
        var sender: PlainRTPSender
        /// Each sent packet as `number timestamp mark`.
        var words: [String] = []

        init(_ codec: Codec = .vp8, from number: UInt16 = 65_534) {
            packets = Packets(codec: codec)
            sender = PlainRTPSenderTests.sender(codec, from: number)
        }

        mutating func next(
            _ mark: UInt8,
            isKeyframe: Bool = false,
            position: Int = 0,
            best: Int = 0,
            epoch: UInt32 = 1
        ) -> TapPacket {
            packets.pass(milliseconds: 20)
            var packet = packets.vp8(mark, isKeyframe: isKeyframe)
            packet.position = position
            packet.best = best
            packet.epoch = epoch
            return packet
        }

        mutating func take(_ packet: TapPacket) {
            guard let bytes = sender.datagram(of: packet) else { return words.append("-") }
            guard let read = try? Packet(bytes.span) else { return words.append("no RTP") }
            let mark = read.payload[read.payload.count - 1]
            words.append("\(read.sequenceNumber.rawValue) \(read.timestamp) \(mark)")
        }

        mutating func send(_ mark: UInt8, isKeyframe: Bool = false) {
            take(next(mark, isKeyframe: isKeyframe))
        }

        mutating func takeWords() -> [String] {
            defer { words = [] }
            return words
        }
    }

    /// A parsed RTCP compound.
    private struct Control {
        var types: [UInt8] = []
        var report: SenderReport?
        var names: [String] = []
        var gone: [SSRC] = []
        var isMalformed = false

        init(_ bytes: [UInt8]) {
            var blocks = RTCPBlocks(bytes.span)
            while let block = blocks.next() {
                types.append(block.type)
                if let report = try? SenderReport(block) { self.report = report }
                if let description = try? SourceDescription(block) {
                    let name = description.cname
                    names.append(String(decoding: name.indices.map { name[$0] }, as: UTF8.self))
                }
                if let goodbye = try? Goodbye(block) {
                    for index in 0..<goodbye.count { gone.append(goodbye[index]) }
                }
            }
            isMalformed = blocks.isMalformed
        }
    }

    @Test func `E-3 video begins with a keyframe, which is asked for`() {
        var story = Story()
        #expect(story.sender.neededKeyframe == nil, "nobody is asked before anything comes")
        story.send(1)
        #expect(story.sender.neededKeyframe == 0)
        story.send(2, isKeyframe: true)
        #expect(story.sender.neededKeyframe == nil)
        story.send(3)
        story.send(4)
        #expect(story.words == ["-", "65534 1000 2", "65535 2800 3", "0 4600 4"])
    }

    @Test func `sound begins with whatever comes first`() {
        var story = Story(.opus)
        story.send(1)
        story.send(2)
        #expect(story.words == ["65534 1000 1", "65535 1960 2"])
    }

    @Test func `a late packet keeps its number, a lost one leaves a gap`() {
        var story = Story(from: 10)
        story.send(1, isKeyframe: true)
        let late = story.next(2)
        _ = story.next(3)
        story.send(4)
        story.take(late)
        #expect(story.words == ["10 1000 1", "13 6400 4", "11 2800 2"])
    }

    @Test func `padding leaves no gap`() {
        var story = Story(from: 10)
        story.send(1, isKeyframe: true)
        let late = story.next(2)
        _ = story.next(3)
        story.send(4)
        story.take(late)
        _ = story.takeWords()
        // In order it uses no number, and late packets before it keep their own.
        var empty = story.next(5)
        empty.isPadding = true
        let another = story.next(6)
        story.take(empty)
        story.send(7)
        story.take(another)
        #expect(story.words == ["-", "15 11800 7", "14 10000 6"])
    }

    @Test func `E-3 what a closed gate held back is no gap, and a keyframe follows`() {
        var story = Story(from: 10)
        story.send(1, isKeyframe: true)
        let late = story.next(2)
        story.sender.mute()
        _ = story.next(3)
        #expect(story.sender.neededKeyframe == 0)
        story.send(4)
        story.send(5, isKeyframe: true)
        story.take(late)
        story.send(6)
        #expect(story.words == ["10 1000 1", "-", "11 8200 5", "-", "12 10000 6"])
    }

    @Test func `another encoding is changed over to at its keyframe`() {
        var story = Story(from: 10)
        story.send(1, isKeyframe: true)
        /// Makes a packet of the better encoding, which has a clock and numbers of its own.
        func better(_ mark: UInt8, _ number: Int64, isKeyframe: Bool = false) -> TapPacket {
            var packet = story.next(
                mark,
                isKeyframe: isKeyframe,
                position: 1,
                best: 1,
                epoch: 2
            )
            packet.number = number
            packet.timestamp &+= 77_777
            return packet
        }
        story.take(better(2, 5_000))
        #expect(story.sender.neededKeyframe == 1)
        story.take(story.next(3, position: 0, best: 1))
        story.take(better(4, 5_001, isKeyframe: true))
        #expect(story.sender.neededKeyframe == nil)
        story.take(story.next(5, position: 0, best: 1))
        story.take(better(6, 5_002))
        let words = story.takeWords()
        #expect(words[0] == "10 1000 1" && words[1] == "-" && words[4] == "-")
        // 60 ms after the first packet, though its number lies beyond a gap in the old sequence.
        #expect(words[2].hasSuffix(" 4600 3") && words[3].hasSuffix(" 6400 4"))
        #expect(words[5].hasSuffix(" 10000 6"))
        let numbers = [words[2], words[3], words[5]].compactMap { $0.split(separator: " ").first }
            .compactMap { Int($0) }
        #expect(numbers == [12, 13, 14])
    }

    @Test func `a numbering that begins anew goes on, and a late packet of the old one does not`() {
        var story = Story(from: 10)
        story.send(1, isKeyframe: true)
        let late = story.next(2)
        var anew = story.next(3, isKeyframe: true, epoch: 2)
        anew.number = 7
        anew.timestamp = 5
        story.take(anew)
        story.take(late)
        #expect(story.words == ["10 1000 1", "11 4600 3", "-"])
    }

    @Test func `a loss that is not repaired leads to a keyframe request`() {
        var story = Story()
        story.send(1, isKeyframe: true)
        _ = story.next(2)
        story.send(3)
        story.sender.expire(at: story.packets.now.advanced(milliseconds: 499))
        #expect(story.sender.neededKeyframe == nil)
        story.sender.expire(at: story.packets.now.advanced(milliseconds: 501))
        #expect(story.sender.neededKeyframe == 0)
        story.send(4, isKeyframe: true)
        #expect(story.sender.neededKeyframe == nil)
    }

    @Test func `more than can be missing is given up at once`() {
        var story = Story()
        story.send(1, isKeyframe: true)
        story.packets.number += 100_000
        story.send(2)
        #expect(story.sender.neededKeyframe == 0)
    }

    @Test func `E-3 reports have the time of capture, once a second`() throws {
        var story = Story(from: 10)
        let first = story.packets.now
        #expect(story.sender.report(at: first, unixNanoseconds: 0) == nil, "nothing is sent yet")
        story.send(1, isKeyframe: true)
        var packet = story.next(2)
        // It was captured 100 ms before it arrived.
        packet.captured = (packet.arrival.advanced(milliseconds: -100), packet.timestamp)
        story.take(packet)
        let now = packet.arrival.advanced(milliseconds: 10)
        let control = Control(
            story.sender.report(at: now, unixNanoseconds: 1_000_000_000) ?? []
        )
        let report = try #require(control.report)
        #expect(report.sender == Self.ssrc && report.packets == 2 && report.octets == 10)
        #expect(report.ntp == NTPTime(unixNanoseconds: 1_000_000_000))
        // A sample captured now has a timestamp 110 ms after that of the packet.
        #expect(report.rtpTimestamp == 2_800 + 9_900)
        #expect(control.types == [RTCPType.senderReport, RTCPType.sourceDescription])
        #expect(control.names == ["str-1"])
        #expect(story.sender.report(at: now, unixNanoseconds: 0) == nil)
        let later = now.advanced(milliseconds: 1_000)
        #expect(story.sender.report(at: later, unixNanoseconds: 0) != nil)
        story.sender.mute()
        let last = later.advanced(milliseconds: 1_000)
        #expect(story.sender.report(at: last, unixNanoseconds: 0) == nil)
    }

    @Test func `the end is told`() {
        let control = Control(Self.sender().goodbye)
        let types = [RTCPType.receiverReport, RTCPType.sourceDescription, RTCPType.goodbye]
        #expect(control.types == types)
        #expect(control.gone == [Self.ssrc] && !control.isMalformed)
    }

    @Test func `a receiver's wish for a keyframe is read`() {
        let sender = Self.sender()
        let other = SSRC(rawValue: 9)
        let loss = [UInt8](capacity: PictureLossIndication.encodedSize) { output in
            PictureLossIndication(sender: other, media: Self.ssrc).encode(into: &output)
        }
        let elsewhere = [UInt8](capacity: PictureLossIndication.encodedSize) { output in
            PictureLossIndication(sender: Self.ssrc, media: other).encode(into: &output)
        }
        let request = [UInt8](capacity: FullIntraRequest.encodedSize) { output in
            let entry = FullIntraRequest.Entry(media: Self.ssrc, number: 1)
            FullIntraRequest.encode(sender: other, entry: entry, into: &output)
        }
        func isWanted(_ bytes: [UInt8]) -> Bool { sender.requestsKeyframe(by: bytes.span) }
        #expect(isWanted(loss))
        #expect(isWanted(elsewhere + request))
        #expect(!isWanted(elsewhere))
        #expect(!isWanted(hex("81c9")))
    }
}
