import LoadPeer
import RTP
import Testing
import WorkerInterface

@testable import SFU

/// C7: MID, RID and RRID that a publisher sends for its streams after they are bound.
struct StreamBindingTests {
    struct Row: CustomTestStringConvertible, Sendable {
        var testDescription: String
        /// Header extension elements, by id.
        var elements: [(id: UInt8, data: [UInt8])]
        /// Whether an unknown SSRC with these elements is bound to a stream.
        var binds = false
    }

    private static let (mid, rid, repairedRID) = (UInt8(4), UInt8(10), UInt8(11))

    static let rows = [
        Row(testDescription: "as agreed", elements: [(mid, [0x31]), (rid, [0x62])], binds: true),
        Row(testDescription: "the MID of its other m-line", elements: [(mid, [0x30])]),
        Row(testDescription: "a MID that nobody has", elements: [(mid, [0x39]), (rid, [0x62])]),
        Row(
            testDescription: "a MID of 255 bytes",
            elements: [(mid, Array(repeating: 0x31, count: 255)), (rid, [0x62])]
        ),
        Row(testDescription: "a MID that is no text", elements: [(mid, [0xff, 0x00, 0xc3])]),
        Row(testDescription: "a MID that begins like one", elements: [(mid, [0x31, 0x00])]),
        Row(testDescription: "an empty MID", elements: [(mid, []), (rid, [0x7a])]),
        Row(testDescription: "a RID that nobody has", elements: [(mid, [0x31]), (rid, [0x7a])]),
        Row(
            testDescription: "a RID of 255 bytes",
            elements: [(mid, [0x31]), (rid, Array(repeating: 0x62, count: 255))]
        ),
        Row(testDescription: "no RID", elements: [(mid, [0x31])]),
        Row(
            testDescription: "an RRID in its place",
            elements: [(mid, [0x31]), (repairedRID, [0x62])]
        ),
        Row(testDescription: "nothing at all", elements: []),
    ]

    /// Makes two publishers, each with audio and two layers, and a viewer of each.
    private static func call() throws -> Call {
        var call = try Call()
        call.join(publications: [Media.audio(0), Media.video(1, rids: ["a", "b"])])
        var (audio, video) = (Media.audio(2), Media.video(3, rids: ["a", "b"]))
        audio.encodings[0].ssrc = nil
        video.encodings[0].ssrc = nil
        call.join(publications: [audio, video])
        call.join(slots: [Media.slot(0, ssrc: 0xaaaa)])
        call.join(slots: [Media.slot(1, ssrc: 0xcccc)])
        for peer in call.peers.indices { call.connect(peer) }
        call.bind(slot: 0, publication: 1)
        call.bind(slot: 1, publication: 3)
        for publisher in 0...1 {
            let ssrc = UInt32(0x4444 + publisher)
            call.sendVideo(
                from: publisher,
                ssrc: ssrc,
                rid: "b",
                sequence: 1,
                pictureID: 1,
                isKeyframe: true
            )
        }
        return call
    }

    /// Makes a packet with two-byte header extensions, for elements of any length (RFC 8285 §4.3).
    private static func packet(_ row: Row, sequence: UInt16, ssrc: UInt32) -> [UInt8] {
        var bytes: [UInt8] = [0x90, 0x80 | 96]
        bytes += sequence.bytes + (UInt32(sequence) * 3_000).bytes + ssrc.bytes
        var block: [UInt8] = []
        for (id, data) in row.elements { block += [id, UInt8(data.count)] + data }
        while block.count % 4 != 0 { block.append(0) }
        bytes += [0x10, 0x00] + UInt16(block.count / 4).bytes + block
        return bytes + Media.vp8Payload(pictureID: sequence, isKeyframe: true)
    }

    @Test(arguments: rows)
    func `C7 a stream keeps its owner, whatever its packets say later`(_ row: Row) throws {
        var call = try Self.call()
        let before = call.peers.map(\.received.count)
        #expect(before == [0, 0, 1, 1])
        for sequence in 2...4 as ClosedRange<UInt16> {
            call.send(Self.packet(row, sequence: sequence, ssrc: 0x4444), from: 0)
        }
        let after = call.peers.map(\.received.count)
        #expect(after == [0, 0, 4, 1])
        #expect(call.numbers(at: 2).isContiguous)
    }

    @Test(arguments: rows)
    func `C7 a new stream is bound by its MID and RID, or not at all`(_ row: Row) throws {
        var call = try Self.call()
        for sequence in 900...903 as ClosedRange<UInt16> {
            call.send(Self.packet(row, sequence: sequence, ssrc: 0x7777), from: 0)
        }
        let received = call.peers.map(\.received.count)
        #expect(received == [0, 0, row.binds ? 5 : 1, 1], "nothing to the other one's viewer")
        let statistics = call.statistics()
        #expect(statistics.isBalanced)
        let drops =
            call.core.receiver.drops[.unknownStream] + call.core.receiver.drops[.unknownPayloadType]
        #expect(drops == (row.binds ? 0 : 4))
    }
}
