import LoadPeer
import RTP
import TestSupport
import Testing

@testable import SFU
@testable import WorkerInterface

/// Padding of a frame's packets to one size on the wire, so that GSO sends them in one call.
struct GSOPaddingTests {
    /// A frame as libwebrtc splits it: about evenly, the later packets one byte longer.
    struct Frame: CustomTestStringConvertible {
        var packets: Int
        /// Number of packets that are one byte longer.
        var longer: Int
        /// Whether the last packet has the video orientation, and so many payload bytes less.
        var isTurned = false

        var sizes: [Int] {
            (0..<packets).map { index in
                let size = index < packets - longer ? 700 : 701
                return isTurned && index == packets - 1 ? size - 4 : size
            }
        }
        var testDescription: String { "\(packets), \(longer) longer\(isTurned ? ", turned" : "")" }
    }

    static let frames = (5...9).flatMap { packets in
        (0..<packets).flatMap { longer in
            [false, true].map { Frame(packets: packets, longer: longer, isTurned: $0) }
        }
    }

    /// Makes a publisher, and viewers with and without the video orientation.
    static func call() throws -> Call {
        var call = try Call()
        var video = Media.video(1)
        video.extensions[.videoOrientation] = 13
        call.join(publications: [Media.audio(0), video])
        var turned = Media.slot(1, ssrc: 0xb000)
        turned.extensions[.videoOrientation] = 8
        call.join(slots: [Media.slot(0), Media.slot(3, kind: .audio, ssrc: 0xd000)])
        call.join(slots: [turned])
        for index in 0..<3 { call.connect(index) }
        call.bind(slot: 0, publication: 1)
        call.bind(slot: 1, publication: 1)
        call.bind(slot: 3, publication: 0)
        return call
    }

    @Test(arguments: frames)
    func `a frame leaves in one GSO call`(_ frame: Frame) throws {
        var call = try Self.call()
        let wire = Wire(&call)
        let sent = call.sendFrame(sizes: frame.sizes, isTurned: frame.isTurned)
        for (peer, ssrc) in [(1, 0xaaaa), (2, 0xb000)] as [(Int, UInt32)] {
            #expect(wire.runs(ssrc) == 1)
            let received = call.peers[peer].received.filter { $0.ssrc == ssrc }
            #expect(received.map { $0.u16(2) }.isContiguous)
            let payloads = try received.map { try $0.media }
            #expect(payloads == sent)
        }
        let octets = call.core.forwarder.slots[0].octets
        #expect(octets == sent.reduce(0) { $0 + UInt32($1.count) })
    }

    static let mixtures: [(name: String, sizes: [Int], expected: [Int])] = [
        ("too far apart", [500, 509, 600], [500, 509, 600]),
        ("a shorter one ends a run", [600, 300, 301, 100], [600, 300, 301, 100]),
        ("too short to be levelled", [400, 401, 392, 100], [401, 401, 392, 100]),
        ("the last may be shorter", [401, 401, 400], [401, 401, 400]),
        ("within the threshold", [392, 400, 396], [400, 400, 396]),
        ("two runs", [700, 701, 701, 300, 500, 501, 501], [701, 701, 701, 300, 501, 501, 501]),
    ]

    @Test(arguments: mixtures)
    func `nothing is padded beyond the largest`(
        name: String,
        sizes: [Int],
        expected: [Int]
    ) throws {
        var call = try Self.call()
        let wire = Wire(&call)
        _ = call.sendFrame(sizes: sizes)
        let lengths = wire.lengths(0xaaaa)
        // The last packets are never padded.
        let overhead = lengths[lengths.count - 1] - expected[expected.count - 1]
        #expect(lengths.map { $0 - overhead } == expected, "\(name)")
    }

    @Test func `each layer is padded separately`() throws {
        var call = try Call()
        call.join(publications: [Media.video(1, rids: ["q", "h"])])
        call.join(slots: [Media.slot(0)])
        call.connect(0)
        call.connect(1)
        call.bind(slot: 0, publication: 1)
        let wire = Wire(&call)
        let quarter = call.frame(ssrc: 0x100, rid: "q", sizes: [200, 201])
        let half = call.frame(ssrc: 0x200, rid: "h", sizes: [600, 600, 601])
        call.sendTogether([
            (0, quarter[0]), (0, half[0]), (0, half[1]), (0, quarter[1]), (0, half[2]),
        ])
        let lengths = wire.lengths(0xaaaa)
        #expect(Set(lengths).count == 1)
    }

    @Test func `a retransmission has no padding`() throws {
        var call = try Self.call()
        let sent = call.sendFrame(sizes: [500, 501, 501])
        let first = try #require(call.peers[1].received.first)
        #expect(first[0] & 0x20 != 0)
        call.nack(first.u16(2), from: 1, ssrc: 0xaaaa)
        let again = try #require(call.peers[1].received.last)
        #expect(again.ssrc == 0xaaab)
        #expect(again[0] & 0x20 == 0)
        let payload = try again.media
        #expect(payload == first.u16(2).bytes + sent[0])
    }

    @Test func `audio is never padded`() throws {
        var call = try Self.call()
        let packets = (0..<6 as Range<UInt16>).map { index in
            Media.packet(
                payloadType: 111,
                sequence: index,
                timestamp: UInt32(index) * 960,
                ssrc: 0x1111,
                elements: [(4, Array("0".utf8))],
                payload: Array(repeating: 7, count: 80 + Int(index) % 2)
            )
        }
        call.sendTogether(packets.map { (0, $0) })
        let received = call.peers[1].received
        #expect(received.count == 6)
        #expect(received.allSatisfy { $0[0] & 0x20 == 0 })
    }

    /// Checks that without RTX a packet is retransmitted unchanged under its own index.
    ///
    /// Other bytes under the same index would reveal the key's secrets (RFC 7714 §8).
    @Test(arguments: 1...8 as ClosedRange<UInt64>)
    func `no index carries two packets where frames are levelled`(seed: UInt64) throws {
        var call = try Self.call()
        let plain = FormatMapping(
            format: MediaFormat(codec: .vp8),
            payloadType: 121,
            feedback: [.nack, .pictureLoss]
        )
        call.join(slots: [Media.slot(5, ssrc: 0xe000, formats: [plain])])
        call.connect(3)
        call.bind(slot: 5, publication: 1)
        let ledger = IndexLedger()
        call.loses = { toCore, datagram in
            if !toCore { ledger.note(datagram) }
            return false
        }
        var noise = SeededRandom(seed: seed)
        for _ in 0..<60 {
            let size = Int.random(in: 100...900, using: &noise)
            let sizes = (0..<Int.random(in: 1...9, using: &noise)).map { _ in
                size + Int.random(in: 0...10, using: &noise)
            }
            _ = call.sendFrame(sizes: sizes)
            for (peer, ssrc) in [(1, 0xaaaa), (3, 0xe000)] as [(Int, UInt32)] {
                guard let last = call.peers[peer].received.last(where: { $0.ssrc == ssrc }) else {
                    continue
                }
                call.nack(last.u16(2) &- UInt16(noise.next() % 12), from: peer, ssrc: ssrc)
            }
            call.run(milliseconds: 5)
        }
        #expect(ledger.violations == 0)
        #expect(ledger.repeats > 20)
        #expect(call.peers[3].undecryptable == ledger.repeats)
        let isPlain = call.peers[3].received.allSatisfy { $0[0] & 0x20 == 0 }
        #expect(isPlain)
        let isPadded = call.peers[1].received.contains { $0[0] & 0x20 != 0 }
        #expect(isPadded)
    }
}

/// RTP datagrams that leave the core, in order: SSRC and length.
final class Wire {
    private(set) var datagrams: [(ssrc: UInt32, length: Int)] = []

    init(_ call: inout Call) {
        call.loses = { [unowned self] toCore, datagram in
            let isRTP = datagram.count > 12 && datagram[0] >> 6 == 2
            if !toCore, isRTP, !(192...223).contains(datagram[1]) {
                datagrams.append((datagram.ssrc, datagram.count))
            }
            return false
        }
    }

    func lengths(_ ssrc: UInt32) -> [Int] {
        datagrams.filter { $0.ssrc == ssrc }.map(\.length)
    }

    /// Number of GSO calls that one stream's datagrams take: equal sizes, the last may be shorter.
    func runs(_ ssrc: UInt32) -> Int {
        var runs = 0
        var size = 0
        for length in lengths(ssrc) {
            if length > size { runs += 1 }
            // A shorter datagram ends the call.
            size = length < size ? 0 : length
        }
        return runs
    }
}

extension Call {
    /// Makes a frame's packets with these payload lengths, numbered consecutively.
    mutating func frame(
        ssrc: UInt32 = 0x2222,
        rid: String? = nil,
        sizes: [Int],
        isTurned: Bool = false
    ) -> [[UInt8]] {
        let picture = transportSequence
        return sizes.indices.map { index in
            var elements: [(UInt8, [UInt8])] = [(4, Array("1".utf8))]
            if let rid { elements.append((10, Array(rid.utf8))) }
            if isTurned, index == sizes.count - 1 { elements.append((13, [1])) }
            defer { transportSequence &+= 1 }
            return Media.packet(
                payloadType: 96,
                sequence: transportSequence,
                timestamp: UInt32(picture) &* 3_000,
                ssrc: ssrc,
                marker: index == sizes.count - 1,
                elements: elements,
                payload: Media.vp8Payload(
                    pictureID: picture & 0x7fff,
                    isKeyframe: picture == 0 || rid != nil,
                    startsFrame: index == 0,
                    size: sizes[index] - 6
                )
            )
        }
    }

    /// Sends a frame of the first peer's video in one batch, and returns the payloads.
    mutating func sendFrame(sizes: [Int], isTurned: Bool = false) -> [[UInt8]] {
        let packets = frame(sizes: sizes, isTurned: isTurned)
        sendTogether(packets.map { (0, $0) })
        return zip(packets, sizes).map { Array($0.suffix($1)) }
    }

    /// Gives packets of several peers to the core as one batch.
    mutating func sendTogether(_ packets: [(peer: Int, bytes: [UInt8])]) {
        for (peer, bytes) in packets {
            var sent = Batch(capacity: 1)
            peers[peer].peer.sendRTP(bytes.span, index: UInt64(bytes.u16(2)), into: &sent)
            core.receive(sent[0], on: peers[peer].path, at: now, into: &output)
        }
        settle()
    }
}

extension [UInt8] {
    /// An RTP packet's payload without padding.
    fileprivate var media: [UInt8] {
        get throws {
            let packet = try Packet(span)
            return Array(self[packet.headerLength..<count - packet.paddingLength])
        }
    }
}
