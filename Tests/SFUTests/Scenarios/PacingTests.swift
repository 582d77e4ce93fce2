import RTP
import Testing

@testable import SFU
@testable import WorkerInterface

/// Packets queued in the pacer, and their fate.
struct PacingTests {
    @Test(arguments: 4...3 + UInt64(Noise.count(40)))
    func `no packet index carries two packets where some have waited`(seed: UInt64) throws {
        var story = try IndexRandomWalk(seed: seed, isLossy: true, frameSize: 400...1_000)
        story.prepareDisruptiveRun()
        var reports = story.viewers.map { ArrivalReports(of: $0) }
        var waited = 0
        for step in 0..<400 {
            story.disruptiveStep()
            for index in reports.indices {
                reports[index].slowdown = step % 40 < 20 ? 2_000_000 : 0
                reports[index].report(in: &story.call)
            }
            waited = max(waited, story.call.waitingPackets)
        }
        let ledger = story.ledger
        #expect(ledger.faults.isEmpty)
        #expect(ledger.undecryptable == 0)
        #expect(waited > 5, "nothing had to wait")
    }

    @Test func `a large frame leaves bit by bit and whole`() throws {
        var story = try CongestedViewer()
        let waiting = story.call.waitingPackets
        #expect(waiting > 20)
        story.call.run(milliseconds: 100)
        let left = story.call.waitingPackets
        #expect(left == 0)
        let numbers = story.call.numbers(at: 1)
        #expect(numbers.count == Int(story.next) - 1)
        #expect(numbers.isContiguous)
    }

    @Test func `queued packets of a lost right are dropped without a gap`() throws {
        var story = try CongestedViewer()
        let before = story.call.numbers(at: 1).count
        story.call.apply(.gate(PublicationID(index: 1, generation: 1), open: false))
        story.call.run(milliseconds: 100)
        #expect(story.call.numbers(at: 1).count == before)
        let left = story.call.waitingPackets
        #expect(left == 0)
        story.call.apply(.gate(PublicationID(index: 1, generation: 1), open: true))
        story.sendFrame(packets: 2)
        story.call.run(milliseconds: 100)
        #expect(story.call.numbers(at: 1).count == before + 2)
        #expect(story.call.numbers(at: 1).isContiguous)
    }

    @Test func `the places of what waits are free again when a transport ends`() throws {
        var story = try CongestedViewer()
        #expect(story.call.waitingPackets > 20)
        story.call.apply(.close(story.call.peers[1].id))
        let left = story.call.waitingPackets
        #expect(left == 0)
    }

    @Test func `video off for lack of bandwidth stays off while it is not sent`() throws {
        var story = try CongestedViewer()
        let viewer = story.call.peers[1].id.place
        story.call.core.allocator.shares[0].value.hold = .quality
        story.call.core.forwarder.slotRecords[0].target = nil
        // Nobody can receive this layer, so its publisher pauses it.
        story.call.core.receiver.publications[1].options.removeAll()
        story.call.core.allocate(viewer, at: story.call.now)
        let hold = story.call.core.allocator.shares[0].value.hold
        #expect(hold == .quality)
    }

    @Test func `a publisher that is watched may offer fewer encodings`() throws {
        var story = try CongestedViewer(rids: ["a", "b"])
        story.call.run(milliseconds: 100)
        let before = story.call.numbers(at: 1).count
        story.call.reconfigure(0) { configuration in
            configuration.publications[0].encodings = Media.video(1).encodings
        }
        story.call.run(milliseconds: 6_000)
        story.rid = nil
        story.ssrc += 1
        for _ in 0..<3 {
            story.sendFrame(packets: 2)
            story.call.run(milliseconds: 2_000)
        }
        #expect(story.call.numbers(at: 1).count >= before + 4)
        #expect(story.call.numbers(at: 1).isContiguous)
    }
}

/// A publisher and a viewer whose path carries little, with a frame that has to wait.
private struct CongestedViewer: ~Copyable {
    var call: Call
    /// The publisher's next sequence number.
    var next: UInt16 = 1
    /// RID of the encoding that it sends: the last of several.
    var rid: String?
    var ssrc: UInt32 = 0x100

    init(rids: [String?] = [nil]) throws {
        rid = rids.last ?? nil
        call = try Call()
        call.join(publications: [Media.video(1, rids: rids)])
        call.join(slots: [Media.slot(0)])
        for index in 0..<2 { call.connect(index) }
        call.bind(slot: 0, publication: 1)
        var reports = ArrivalReports(of: 1)
        for _ in 0..<20 {
            sendFrame(packets: 2)
            call.run(milliseconds: 30)
            reports.report(in: &call)
        }
        sendFrame(packets: 60)
    }

    mutating func sendFrame(packets: Int) {
        var sent: [(bytes: [UInt8], rollover: UInt64)] = []
        var elements: [(UInt8, [UInt8])] = [(4, Array("1".utf8))]
        if let rid { elements.append((10, Array(rid.utf8))) }
        for place in 0..<packets {
            let payload = Media.vp8Payload(
                pictureID: next & 0x7fff,
                isKeyframe: true,
                startsFrame: place == 0,
                size: 1_000
            )
            let packet = Media.packet(
                payloadType: 96,
                sequence: next &+ UInt16(place),
                timestamp: UInt32(next) * 3_000,
                ssrc: ssrc,
                marker: place == packets - 1,
                elements: elements,
                payload: payload
            )
            sent.append((packet, 0))
        }
        next &+= UInt16(packets)
        call.send(sent, from: 0)
    }
}
