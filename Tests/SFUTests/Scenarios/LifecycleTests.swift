import LoadPeer
import RTP
import Testing

@testable import SFU
@testable import WorkerInterface

/// DTLS in both roles, liveness, closing, and reuse of slots.
struct LifecycleTests {
    @Test func `the handshake works with sfud as client`() throws {
        var call = try Call()
        call.join(publications: [Media.video(1)])
        call.join(slots: [Media.slot(0)], role: .client)
        call.connect(0)
        call.connect(1)
        let connected = call.peers.map { $0.peer.isConnected }
        #expect(connected == [true, true])
        call.bind(slot: 0, publication: 1)
        call.sendVideo(sequence: 1, pictureID: 1, isKeyframe: true)
        #expect(call.peers[1].received.count == 1)
    }

    @Test func `a slot that was bound before its transport connected asks for a keyframe at once`()
        throws
    {
        var call = try Call()
        call.join(publications: [Media.video(1)])
        call.connect(0)
        call.sendVideo(sequence: 1, pictureID: 1, isKeyframe: true)
        call.join(slots: [Media.slot(0)])
        call.bind(slot: 0, publication: 1)
        // The warm picture is too old.
        call.run(milliseconds: 16_000)
        let before = call.keyframeRequests(at: 0)
        call.connect(1)
        call.run(milliseconds: 10)
        #expect(call.keyframeRequests(at: 0) == before + 1)
    }

    @Test(arguments: [DTLSRole.server, .client])
    func `a certificate with another fingerprint gets and gives no media`(role: DTLSRole) throws {
        var call = try Call()
        call.join(publications: [Media.video(1)])
        let other = try DTLSIdentity().fingerprint
        call.join(slots: [Media.slot(0)], role: role, fingerprints: [other])
        call.connect(0)
        call.connect(1)
        call.bind(slot: 0, publication: 1)
        call.sendVideo(sequence: 1, pictureID: 1, isKeyframe: true)
        let id = call.peers[1].id
        let isTold = call.takeEvents().contains(
            .transport(id, .disconnected(.fingerprintMismatch))
        )
        #expect(isTold)
        #expect(call.peers[1].received.isEmpty)
        #expect(call.statistics().rtpOut == 0)
    }

    @Test func `a ClientHello from an address without a check gets nothing`() throws {
        var call = try Call()
        call.join(slots: [Media.slot(0)])
        let hello = try DTLSIdentity()
        var client = try DTLSAssociation(
            identity: hello,
            role: .client,
            fingerprints: [hello.fingerprint],
            at: call.now
        )
        var sent = Batch(capacity: 4)
        sent.append(to: .from(port: 1)) { _ = client.nextDatagram(into: &$0) }
        let datagram = sent[0].indices.map { sent[0][$0] }
        for port in 1..<1_000 as Range<UInt16> { call.inject(datagram, on: .from(port: port)) }
        call.settle()
        #expect(call.misdirected == 0)
        let statistics = call.statistics()
        #expect(statistics.datagramsOut == 0)
        #expect(statistics.drops[DropReason.unknownSource.index] == 999)
        call.connect(0)
        let isConnected = call.peers[0].peer.isConnected
        #expect(isConnected)
    }

    @Test func `junk on an association neither ends it nor keeps it alive`() throws {
        var call = try ForwardingTests.call()
        _ = call.takeEvents()
        call.silent = [1]
        let alert: [UInt8] = [21, 0xfe, 0xfd, 0, 0, 0, 0, 0, 0, 0, 9, 0, 2, 2, 40]
        for _ in 0..<90 {
            call.inject(alert, on: call.peers[1].path)
            call.run(milliseconds: 100)
        }
        #expect(call.takeEvents() == [.transport(call.peers[1].id, .reconnecting)])
    }

    @Test func `closing says goodbye and forgets everything`() throws {
        var call = try Call()
        let before = call.occupancy
        call.join(publications: [Media.audio(0), Media.video(1)])
        call.join(slots: [Media.slot(0)])
        call.connect(0)
        call.connect(1)
        call.bind(slot: 0, publication: 1)
        call.sendVideo(sequence: 1, pictureID: 1, isKeyframe: true)
        let datagrams = call.peers[1].datagrams
        call.apply(.close(call.peers[0].id))
        call.apply(.close(call.peers[1].id))
        #expect(call.peers[1].datagrams == datagrams + 1)
        call.run(milliseconds: 10)
        #expect(call.occupancy == before)
        call.apply(.close(call.peers[1].id))
        call.sendVideo(sequence: 2, pictureID: 2, isKeyframe: true)
        #expect(call.statistics().isBalanced)
    }

    @Test func `a peer that says goodbye is gone at once`() throws {
        var call = try ForwardingTests.call()
        _ = call.takeEvents()
        var sent = Batch(capacity: 4)
        call.peers[1].peer.close(into: &sent)
        call.deliver(&sent, from: 1)
        #expect(call.takeEvents() == [.transport(call.peers[1].id, .disconnected(.closed))])
        call.check(from: 1)
        #expect(call.core.transports.paths.count == 1)
    }

    @Test(arguments: [1_500, 9_000, 35_000, 600_000] as [Int64])
    func `a stall of the process disconnects nobody`(milliseconds: Int64) throws {
        var call = try ForwardingTests.call()
        call.run(milliseconds: 500)
        _ = call.takeEvents()
        call.now = call.now.advanced(milliseconds: milliseconds)
        while call.core.expire(at: call.now, into: &call.output) {}
        call.settle()
        call.run(milliseconds: 3_000)
        #expect(call.takeEvents().isEmpty)
        call.sendVideo(sequence: 1, pictureID: 1, isKeyframe: true)
        #expect(call.peers[1].received.count == 1)
    }

    @Test func `a stall is forgiven once, however many calls it takes to do what is due`() throws {
        var call = try Call()
        let count = Core.timersAtOnce + 8
        for index in 0..<count {
            call.join(publications: [Media.audio(0)])
            call.connect(index)
        }
        // They are silent from now on: for 5 of the 8 seconds after which silence is reported.
        call.silent = Set(0..<count)
        call.run(milliseconds: 5_000)
        _ = call.takeEvents()
        call.now = call.now.advanced(milliseconds: 35_000)
        #expect(call.core.expire(at: call.now, into: &call.output))
        while call.core.expire(at: call.now, into: &call.output) { call.settle() }
        call.settle()
        call.run(milliseconds: 1_000)
        #expect(call.takeEvents().isEmpty)
        call.run(milliseconds: 3_000)
        let silent = call.takeEvents().filter {
            if case .transport(_, .reconnecting) = $0 { true } else { false }
        }
        #expect(silent.count == count)
    }

    @Test func `the next tenant of a place never sees the last one's media`() throws {
        var call = try ForwardingTests.call()
        for step in 0..<5 as Range<UInt16> {
            call.sendVideo(sequence: step, pictureID: step, isKeyframe: step == 0)
        }
        // The publication's slot gets another tenant, and the old handles stay in use.
        call.reconfigure(0) { configuration in
            configuration.publications.remove(at: 1)
            var video = Media.video(1)
            video.id.generation = 2
            configuration.publications.append(video)
        }
        let last = call.peers[1].received[4].u16(2)
        call.nack(last, from: 1, ssrc: 0xaaaa)
        call.apply(.gate(PublicationID(index: 1, generation: 1), open: false))
        call.bind(slot: 0, publication: 1)
        call.sendVideo(sequence: 9, pictureID: 9, isKeyframe: true)
        #expect(call.peers[1].received.count == 5)
        let binding = Binding(
            publication: PublicationID(index: 1, generation: 2),
            subscription: 8,
            open: true
        )
        // It begins with the new tenant's warm picture.
        call.apply(.bind(SlotID(index: 0, generation: 1), binding))
        call.sendVideo(sequence: 10, pictureID: 10, isKeyframe: true)
        #expect(call.peers[1].received.count == 7)
        #expect(call.numbers(at: 1).isContiguous)
        #expect(call.statistics().isBalanced)
    }

    @Test func `an m-line that goes while packets are queued takes them along`() throws {
        var call = try ForwardingTests.call()
        call.sendVideo(sequence: 1, pictureID: 1, isKeyframe: true)
        var sent = Batch(capacity: 8)
        for number in 2..<6 as Range<UInt16> {
            let packet = Media.packet(
                payloadType: 96,
                sequence: number,
                timestamp: 0,
                ssrc: 0x2222,
                elements: [(4, Array("1".utf8))],
                payload: Media.vp8Payload(pictureID: number, isKeyframe: false)
            )
            call.peers[0].peer.sendRTP(packet.span, index: UInt64(number), into: &sent)
        }
        for position in 0..<sent.count {
            call.core.receive(
                sent[position],
                on: call.peers[0].path,
                at: call.now,
                into: &call.output
            )
        }
        call.reconfigure(0) { $0.publications.removeLast() }
        #expect(call.peers[1].received.count == 1)
        let statistics = call.statistics()
        #expect(statistics.isBalanced)
        #expect(statistics.publications.count == 1)
        #expect(call.core.receiver.pool.used == 1)
    }

    /// A browser stops sending MID and RID once reports show that they have arrived.
    ///
    /// It does not resume them even where an m-line was `inactive` for a while.
    @Test func `a layer that comes back on its m-line is known by its SSRC`() throws {
        var call = try Call()
        call.join(publications: [Media.video(1, rids: ["a", "b"])])
        call.join(slots: [Media.slot(0)])
        call.connect(0)
        call.connect(1)
        call.bind(slot: 0, publication: 1)
        call.sendVideo(ssrc: 0x4444, rid: "b", sequence: 1, pictureID: 1, isKeyframe: true)
        #expect(call.peers[1].received.count == 1)

        call.reconfigure(0) { $0.publications = [] }
        call.sendVideo(ssrc: 0x4444, sequence: 2, pictureID: 2, isKeyframe: true)
        #expect(call.peers[1].received.count == 1)

        call.reconfigure(0) { configuration in
            var video = Media.video(1, rids: ["a", "b"])
            video.id.generation = 2
            configuration.publications = [video]
        }
        let binding = Binding(
            publication: PublicationID(index: 1, generation: 2),
            subscription: 8,
            open: true
        )
        call.apply(.bind(SlotID(index: 0, generation: 1), binding))
        call.sendVideo(ssrc: 0x4444, sequence: 3, pictureID: 3, isKeyframe: true)
        #expect(call.peers[1].received.count == 2)
        let streams = call.statistics().publications.flatMap(\.encodings)
        #expect(streams.map(\.ssrc) == [SSRC(rawValue: 0x4444)])
    }
}
