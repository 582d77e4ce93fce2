import LoadPeer
import RTP
import Testing

@testable import SFU
@testable import WorkerInterface

/// One room on several workers: remote viewers get the same as those on the publisher's worker.
struct RelayTests {
    static let video = PublicationID(index: 1, generation: 1)
    static let slot = SlotID(index: 0, generation: 1)

    /// Makes a publisher on worker 0 and a viewer on each worker, worker 0 included.
    static func call(
        workers: Int = 3,
        rids: [String?] = [nil],
        seed: UInt64 = 1
    ) throws -> RelayedCall {
        let call = try RelayedCall(workers: workers, seed: seed)
        let publications = [Media.audio(0), Media.video(1, rids: rids)]
        call.workers[0].call.join(publications: publications)
        for index in 0..<workers {
            let slots = [Media.slot(0), Media.slot(1, kind: .audio, ssrc: 0xbbbb)]
            call.workers[index].call.join(slots: slots)
        }
        for worker in call.workers {
            for peer in worker.call.peers.indices { worker.call.connect(peer) }
        }
        call.alignClocks()
        for publication in publications { call.wire(publication, from: 0, to: Array(1..<workers)) }
        for index in 0..<workers { call.watch(index) }
        return call
    }

    @Test func `viewers in other workers get the same packets`() throws {
        var call = try Self.call()
        for step in 0..<20 as Range<UInt16> {
            call.sendVideo(step, isKeyframe: step == 0)
            call.sendAudio(step)
            call.run(milliseconds: 20)
        }
        let home = call.viewer(0).payloads(of: 0xaaaa)
        let sound = call.viewer(0).payloads(of: 0xbbbb)
        #expect(home.count == 20 && sound.count == 20)
        for index in 1..<3 {
            #expect(call.viewer(index).payloads(of: 0xaaaa) == home)
            #expect(call.viewer(index).payloads(of: 0xbbbb) == sound)
            #expect(call.viewer(index).numbers(of: 0xaaaa).isContiguous)
        }
        let statistics = call.statistics()
        #expect(statistics[0].relayedOut == 80 && statistics[1].relayedIn == 40)
        #expect(statistics[0].rtpForwarded == 40 && statistics[2].relayedForwarded == 40)
        #expect(statistics.allSatisfy { $0.isBalanced && $0.relaysAreBalanced })
        #expect(statistics.map(\.publications.count) == [2, 0, 0])
    }

    @Test func `a home without viewers of its own hands on all the same`() throws {
        var call = try Self.call(workers: 2)
        call.workers[0].call.apply(.bind(Self.slot, nil))
        for step in 0..<5 as Range<UInt16> {
            call.sendVideo(step, isKeyframe: step == 0)
            call.run(milliseconds: 20)
        }
        #expect(call.viewer(0).numbers(of: 0xaaaa).isEmpty)
        #expect(call.viewer(1).numbers(of: 0xaaaa).count == 5)
        let statistics = call.statistics()
        #expect(statistics[0].rtpForwarded == 5)
        #expect(statistics.allSatisfy { $0.isBalanced && $0.relaysAreBalanced })
    }

    @Test func `padding leaves no hole elsewhere either`() throws {
        var call = try Self.call(workers: 2)
        call.sendVideo(0, isKeyframe: true)
        for step in 1..<9 as Range<UInt16> {
            var padding = Media.packet(
                payloadType: 96,
                sequence: step,
                timestamp: 0,
                ssrc: 0x2222,
                elements: [(4, Array("1".utf8))],
                payload: [0, 0, 0, 4]
            )
            padding[0] |= 0x20
            call.workers[0].call.send(padding, from: 0)
        }
        call.sendVideo(9, isKeyframe: false)
        call.run(milliseconds: 2)
        #expect(call.viewer(1).numbers(of: 0xaaaa).count == 2)
        #expect(call.viewer(1).numbers(of: 0xaaaa).isContiguous)
        #expect(call.statistics().allSatisfy { $0.isBalanced && $0.relaysAreBalanced })
    }

    @Test func `all workers' viewers go up and down the layers together`() throws {
        var call = try Self.call(rids: ["q", "h", "f"])
        for step in 0..<120 as Range<UInt16> {
            for (layer, rid) in ["q", "h", "f"].enumerated() {
                if rid == "f", !(30..<60).contains(step) { continue }
                call.workers[0].call.sendVideo(
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
        for (index, worker) in call.workers.enumerated() {
            let events = worker.call.takeEvents()
            let changes = events.compactMap { event in
                if case .layerChanged(_, _, _, let to) = event { to?.rid } else { nil }
            }
            // All packets of one ring read are inspected before any of them is forwarded.
            let expected = index == 0 ? ["q", "h", "f", "h"] : ["h", "f", "h"]
            #expect(changes == expected, "worker \(index)")
            let reports = events.filter { if case .layers = $0 { true } else { false } }
            #expect(reports.isEmpty == (index > 0), "worker \(index)")
            #expect(call.viewer(index).numbers(of: 0xaaaa).isContiguous, "worker \(index)")
        }
    }

    @Test func `a keyframe is asked for once, however many workers want it`() throws {
        var call = try Self.call()
        call.sendVideo(0, isKeyframe: true)
        call.run(milliseconds: 500)
        call.workers[0].call.peers[0].reports = []
        for index in 0..<3 { call.loseTheirPicture(index) }
        call.run(milliseconds: 300)
        #expect(call.workers[0].call.keyframeRequests(at: 0) == 1)
        // A later request shares the answer; without one the publisher is asked again.
        call.loseTheirPicture(2)
        call.run(milliseconds: 50)
        #expect(call.workers[0].call.keyframeRequests(at: 0) == 1)
        call.run(milliseconds: 100)
        #expect(call.workers[0].call.keyframeRequests(at: 0) == 2)
        call.sendVideo(1, isKeyframe: true)
        call.run(milliseconds: 3_000)
        #expect(call.workers[0].call.keyframeRequests(at: 0) == 2)
    }

    @Test func `a viewer who comes to another worker starts with a keyframe of its own`() throws {
        var call = try Self.call(workers: 2)
        call.workers[1].call.apply(.bind(Self.slot, nil))
        for step in 0..<10 as Range<UInt16> {
            call.sendVideo(step, isKeyframe: step == 0)
            call.run(milliseconds: 33)
        }
        // The warm picture is too old.
        call.run(milliseconds: 16_000)
        call.workers[0].call.peers[0].reports = []
        call.watch(1)
        call.run(milliseconds: 2)
        #expect(call.workers[0].call.keyframeRequests(at: 0) == 1)
        call.sendVideo(10, isKeyframe: false)
        call.run(milliseconds: 2)
        #expect(call.viewer(1).numbers(of: 0xaaaa).isEmpty)
        call.sendVideo(11, isKeyframe: true)
        call.run(milliseconds: 2)
        #expect(call.viewer(1).numbers(of: 0xaaaa).count == 1)
    }

    @Test func `a viewer who comes to another worker has the mirror's last picture at once`()
        throws
    {
        var call = try Self.call(workers: 2)
        call.workers[1].call.apply(.bind(Self.slot, nil))
        for step in 0..<10 as Range<UInt16> {
            call.sendVideo(step, isKeyframe: step == 0)
            call.run(milliseconds: 33)
        }
        call.workers[0].call.peers[0].reports = []
        call.watch(1)
        #expect(call.viewer(1).numbers(of: 0xaaaa).count == 10)
        call.sendVideo(10, isKeyframe: false)
        call.run(milliseconds: 2)
        #expect(call.viewer(1).numbers(of: 0xaaaa).count == 11)
        #expect(call.viewer(1).numbers(of: 0xaaaa).isContiguous)
        #expect(call.workers[0].call.keyframeRequests(at: 0) == 0)
    }

    @Test(arguments: [0, 3] as [Int64])
    func `the first viewer in another worker has the home's last picture at once`(
        lag: Int64
    ) throws {
        var call = try Self.call(workers: 2)
        call.lag = lag
        let late = Self.lateMirror
        for step in 0..<60 as Range<UInt16> {
            call.sendVideo(step, isKeyframe: step == 0)
            call.run(milliseconds: 33)
        }
        call.workers[0].call.peers[0].reports = []
        call.workers[1].call.peers[0].received = []
        let home = RelayTarget(worker: 0, publication: Self.video)
        var configuration = Media.video(1)
        configuration.id = late
        call.workers[1].call.apply(
            .mirror(Mirror(configuration: configuration, home: home, open: true))
        )
        let binding = Binding(publication: late, subscription: 8, open: true)
        call.workers[1].call.apply(.bind(Self.slot, binding))
        call.run(milliseconds: 3)
        let targets = [RelayedCall.mirrorID(1), late].map {
            RelayTarget(worker: 1, publication: $0)
        }
        call.workers[0].call.apply(.relay(Self.video, to: targets))
        call.run(milliseconds: 20)
        #expect(call.viewer(1).numbers(of: 0xaaaa).count == 60)
        for step in 60..<65 as Range<UInt16> {
            call.sendVideo(step, isKeyframe: false)
            call.run(milliseconds: 33)
        }
        let numbers = call.viewer(1).numbers(of: 0xaaaa)
        #expect(numbers.count == 65 && numbers.isContiguous)
        let ids = call.viewer(1).payloads(of: 0xaaaa).map { $0.u16(2) & 0x7fff }
        #expect(ids.isContiguous)
        #expect(call.workers[0].call.keyframeRequests(at: 0) == 0)
        #expect(call.statistics().allSatisfy { $0.isBalanced && $0.relaysAreBalanced })
    }

    static let lateMirror = PublicationID(index: 150, generation: 1)

    @Test func `a NACK is answered where the viewer is`() throws {
        var call = try Self.call(workers: 2)
        for step in 0..<5 as Range<UInt16> { call.sendVideo(step, isKeyframe: step == 0) }
        call.run(milliseconds: 10)
        let third = call.viewer(1).received[2]
        call.busy = [0, 1]
        call.workers[1].call.nack(third.u16(2), from: 0, ssrc: 0xaaaa)
        let rtx = try #require(call.viewer(1).received.last)
        let packet = try Packet(rtx.span)
        let media = try Packet(third.span)
        let ssrc = packet.ssrc
        #expect(ssrc.rawValue == 0xaaab)
        let payload = Array(rtx[packet.headerLength...])
        let expected = third.u16(2).bytes + third[media.headerLength...]
        #expect(payload == expected)
        #expect(call.statistics()[1].rtxOut == 1)
    }

    @Test func `sender reports keep lips in sync across workers`() throws {
        var call = try Self.call(workers: 2)
        let report = SenderReport(
            sender: SSRC(rawValue: 0x2222),
            ntp: NTPTime(unixNanoseconds: 1_000_000_000_000_000_000),
            rtpTimestamp: 90_000,
            packets: 1,
            octets: 1
        )
        call.workers[0].call.sendVideo(
            sequence: 0,
            pictureID: 0,
            isKeyframe: true,
            timestamp: 90_000
        )
        call.workers[0].call.sendRTCP(from: 0) { report.encode(into: &$0) }
        let captured = call.workers[0].call.now
        call.run(milliseconds: 33)
        call.workers[0].call.sendVideo(
            sequence: 1,
            pictureID: 1,
            isKeyframe: false,
            timestamp: 92_970
        )
        call.run(milliseconds: 1_100)
        let sent = try #require(call.viewer(1).senderReports(of: 0xaaaa).last)
        let first = call.viewer(1).received[0].u32(4)
        let passed = sent.ntp.nanoseconds(
            since: NTPTime(unixNanoseconds: captured.nanoseconds + 1_700_000_000_000_000_000)
        )
        let ticks = Int64(Int32(bitPattern: sent.rtpTimestamp &- first))
        #expect(abs(ticks - passed * 90 / 1_000_000) <= 90)
    }

    @Test func `a publisher that starts anew is followed everywhere`() throws {
        var call = try Self.call()
        let ledgers = call.keepLedgers()
        for step in 0..<10 as Range<UInt16> {
            call.sendVideo(step, isKeyframe: step == 0)
            call.run(milliseconds: 20)
        }
        for step in 0..<10 as Range<UInt16> {
            call.workers[0].call.sendVideo(
                ssrc: 0x2323,
                sequence: step,
                pictureID: 500 + step,
                isKeyframe: step == 0
            )
            call.run(milliseconds: 20)
        }
        for index in 0..<3 {
            #expect(call.viewer(index).numbers(of: 0xaaaa).count == 20)
            #expect(call.viewer(index).numbers(of: 0xaaaa).isContiguous)
            #expect(ledgers[index].violations == 0)
        }
    }

    /// A slot that goes on after a restart has no target before the layers are known.
    @Test(arguments: [true, false])
    func `a home that numbers anew is asked for a keyframe`(isTargetKnown: Bool) throws {
        var call = try Self.call(workers: 2)
        for step in 0..<10 as Range<UInt16> {
            call.sendVideo(step, isKeyframe: step == 0)
            call.run(milliseconds: 33)
        }
        call.run(milliseconds: 2_000)
        call.workers[0].call.peers[0].reports = []
        let mirror = RelayedCall.mirrorID(1).place
        let encoding = call.workers[1].call.core.receiver.publications[mirror].encodings[0]
        call.workers[1].call.core.receiver.encodings[encoding].homeEpoch = .max
        if !isTargetKnown {
            call.workers[1].call.core.forwarder.slotRecords[Self.slot.place].target = nil
            call.workers[1].call.core.forwarder.slotRecords[Self.slot.place].isContinued = true
            // As if no layer was known.
            call.workers[1].call.core.receiver.publications[mirror].withheld = .max
            call.workers[1].call.core.receiver.publications[mirror].options.removeAll()
        }
        call.sendVideo(10, isKeyframe: false)
        call.run(milliseconds: 50)
        #expect(call.workers[0].call.keyframeRequests(at: 0) == 1)
        call.workers[1].call.core.receiver.publications[mirror].withheld = 0
        call.sendVideo(11, isKeyframe: true)
        call.run(milliseconds: 50)
        #expect(call.viewer(1).numbers(of: 0xaaaa).count == 11)
    }

    /// Makes a mirror like that of a process that has begun again: it has no picture.
    private static func begin(_ mirror: PublicationIndex, in receiver: inout Receiver) {
        let encoding = receiver.publications[mirror].encodings[0]
        receiver.encodings[encoding].history.removeAll(from: &receiver.pool)
        receiver.encodings[encoding].homeEpoch = .max
        receiver.publications[mirror].wantsPicture = true
        receiver.publications[mirror].asks = 20
    }

    /// Viewers that go on have what came before, so the picture's numbering ends theirs.
    @Test func `a home that numbers anew is asked for a keyframe, also if its picture comes first`()
        throws
    {
        var call = try Self.call(workers: 2)
        for step in 0..<60 as Range<UInt16> {
            call.sendVideo(step, isKeyframe: step == 0)
            call.run(milliseconds: 33)
        }
        call.workers[0].call.peers[0].reports = []
        let mirror = RelayedCall.mirrorID(1).place
        let encoding = call.workers[1].call.core.receiver.publications[mirror].encodings[0]
        Self.begin(mirror, in: &call.workers[1].call.core.receiver)
        call.workers[1].call.core.receiver.scheduleMirrors(by: call.workers[1].call.now)
        call.run(milliseconds: 200)
        #expect(call.workers[1].call.core.receiver.publications[mirror].wantsPicture == false)
        #expect(call.workers[1].call.core.receiver.encodings[encoding].homeEpoch != .max)
        #expect(call.workers[0].call.keyframeRequests(at: 0) == 1)
        call.sendVideo(60, isKeyframe: true)
        call.sendVideo(61, isKeyframe: false)
        call.run(milliseconds: 50)
        #expect(call.viewer(1).numbers(of: 0xaaaa).count == 62)
    }
}
