import LoadPeer
import RTP
import TestSupport
import Testing
import WorkerInterface

@testable import SFU

/// Transports go on after the process has died, at any datagram.
struct ResumeTests {
    @Test func `the fields lie where the table of the newest version says`() {
        #expect(SavedLayout.compiled == SavedLayout.of(version: SavedMemory.version))
    }

    struct Run: CustomTestStringConvertible, Sendable {
        var seed: UInt64
        var profile: SRTPProfile
        var engine: SRTPEngine

        var testDescription: String { "\(profile.name) by \(engine.rawValue), seed \(seed)" }
    }

    static let runs = (0..<UInt64(Noise.count(40, short: 1))).flatMap { seed in
        SRTPProfile.allCases.flatMap { profile in
            SRTPEngine.available.map { Run(seed: seed + 1, profile: profile, engine: $0) }
        }
    }

    @Test(arguments: runs)
    func `no key and index carries two plaintexts over many lives`(_ run: Run) throws {
        var story = try IndexRandomWalk(
            seed: run.seed,
            isLossy: true,
            profile: run.profile,
            engine: run.engine,
            isSaved: true
        )
        story.prepareDisruptiveRun()
        var lives = 0
        for _ in 0..<12 {
            for _ in 0..<25 { story.disruptiveStep() }
            story.call.life?.crash(after: Int.random(in: 0...200, using: &story.noise))
            for _ in 0..<25 where story.call.life?.isDead == false { story.step() }
            story.call.restart(after: Int64.random(in: 20...400, using: &story.noise))
            let ended = story.call.takeEvents().contains {
                if case .transport(_, .disconnected) = $0 { true } else { false }
            }
            #expect(!ended)
            let before = story.ledger.packets
            for _ in 0..<25 { story.disruptiveStep() }
            if story.ledger.packets > before { lives += 1 }
        }
        for _ in 0..<50 { story.disruptiveStep() }
        let ledger = story.ledger
        // In some lives all that is watched is muted.
        #expect(lives >= 8)
        #expect(ledger.faults.isEmpty)
        #expect(ledger.undecryptable == 0)
        #expect(ledger.packets > 500)
        #expect(ledger.reports > 10)
    }

    /// A publisher of sound and one picture, and a viewer of both.
    private func call() throws -> Call {
        var call = try Call(isSaved: true)
        call.join(publications: [Media.audio(0), Media.video(1)])
        call.join(
            slots: [
                Media.slot(0, kind: .audio, ssrc: 0xa100), Media.slot(1, ssrc: 0xa200),
            ]
        )
        call.connect(0)
        call.connect(1)
        call.bind(slot: 0, publication: 0)
        call.bind(slot: 1, publication: 1)
        return call
    }

    private func sendSound(_ number: UInt16, in call: inout Call) {
        let packet = Media.packet(
            payloadType: 111,
            sequence: number,
            timestamp: UInt32(number) &* 960,
            ssrc: 0x1111,
            elements: [(4, Array("0".utf8))],
            payload: Array(repeating: UInt8(truncatingIfNeeded: number), count: 40)
        )
        call.send(packet, from: 0)
    }

    /// Sends sound and pictures, of which the first one ever is a keyframe.
    private func send(_ numbers: ClosedRange<UInt16>, in call: inout Call) {
        for number in numbers {
            sendSound(number, in: &call)
            call.sendVideo(sequence: number, pictureID: number, isKeyframe: number == 1)
            call.run(milliseconds: 20)
        }
    }

    @Test func `a viewer's streams go on without a gap and without a keyframe`() throws {
        var call = try call()
        send(1...20, in: &call)
        let requests = call.keyframeRequests(at: 0)
        call.restart(after: 60)
        send(21...40, in: &call)
        #expect(call.keyframeRequests(at: 0) == requests)
        for ssrc in [0xa100, 0xa200] as [UInt32] {
            let packets = call.peers[1].received.filter { $0.ssrc == ssrc }
            #expect(packets.count == 40)
            #expect(packets.map { $0.u16(2) }.isContiguous)
            let times = packets.map { $0.u32(4) }
            #expect(zip(times, times.dropFirst()).allSatisfy { Int32(bitPattern: $1 &- $0) > 0 })
        }
        let pictures = try call.peers[1].received.filter { $0.ssrc == 0xa200 }.map { bytes in
            try #require(VP8Descriptor(try Packet(bytes.span).payload)?.pictureID)
        }
        #expect(zip(pictures, pictures.dropFirst()).allSatisfy { ($1 &- $0) & 0x7fff == 1 })
        #expect(call.peers[1].undecryptable == 0)
        let states = call.takeEvents().filter { event in
            if case .transport = event { true } else { false }
        }
        #expect(states.count == 2, "they connected once: \(states)")
    }

    @Test func `what the earlier process did not forward is asked for again`() throws {
        var call = try call()
        send(1...20, in: &call)
        // It dies with packet 21 in its hands, and 22 is lost on the way to the next one.
        call.life?.crash(after: 0)
        send(21...21, in: &call)
        call.restart(after: 60)
        send(23...26, in: &call)
        // The request for 21 names 22 in its bitmask.
        #expect(call.nacks(at: 0).first == 21)
        let numbers = call.peers[1].received.filter { $0.ssrc == 0xa200 }.map { $0.u16(2) }
        let first = try #require(numbers.first)
        // The viewer sees the gap too.
        #expect(numbers.map { $0 &- first } == Array(0..<20) + [22, 23, 24, 25])
    }

    @Test func `lives in a row go on without a keyframe`() throws {
        var call = try call()
        send(1...20, in: &call)
        let requests = call.keyframeRequests(at: 0)
        for life in 1...4 as ClosedRange<UInt16> {
            call.restart(after: 60)
            send(life * 20 + 1...life * 20 + 20, in: &call)
        }
        #expect(call.keyframeRequests(at: 0) == requests)
        let numbers = call.peers[1].received.filter { $0.ssrc == 0xa200 }.map { $0.u16(2) }
        #expect(numbers.count == 100 && numbers.isContiguous)
    }

    @Test func `a publisher that restarted its numbering begins with a keyframe`() throws {
        var call = try call()
        send(1...20, in: &call)
        let requests = call.keyframeRequests(at: 0)
        call.restart(after: 60)
        call.sendVideo(sequence: 9_000, pictureID: 50, isKeyframe: false)
        call.run(milliseconds: 100)
        #expect(call.keyframeRequests(at: 0) > requests)
        call.sendVideo(sequence: 9_001, pictureID: 51, isKeyframe: true)
        let packets = call.peers[1].received.filter { $0.ssrc == 0xa200 }
        #expect(packets.count == 21)
        #expect(packets.map { $0.u16(2) }.isContiguous)
    }

    @Test func `what an earlier process accepted is not accepted again`() throws {
        var call = try call()
        var sent = Batch(capacity: 2)
        let packet = Media.packet(
            payloadType: 111,
            sequence: 1,
            timestamp: 960,
            ssrc: 0x1111,
            elements: [(4, Array("0".utf8))],
            payload: Array(repeating: 1, count: 40)
        )
        call.peers[0].peer.sendRTP(packet.span, index: 1, into: &sent)
        let copy = sent[0].indices.map { sent[0][$0] }
        call.deliver(&sent, from: 0)
        #expect(call.peers[1].received.count == 1)
        call.restart(after: 60)
        call.core.receive(copy.span, on: call.peers[0].path, at: call.now, into: &call.output)
        call.settle()
        #expect(call.peers[1].received.count == 1)
        #expect(call.core.receiver.drops[.srtpReplay] == 1)
    }

    @Test(arguments: [0, 24, 26, 27] as [Int])
    func `a record that makes no sense costs its transport alone`(offset: Int) throws {
        var call = try call()
        sendSound(1, in: &call)
        // The publisher's record is the first.
        call.life?.damage(byteOf: .transports, element: 0, at: offset)
        call.restart(after: 60)
        let ended = call.takeEvents().compactMap { event -> TransportID? in
            guard case .transport(let id, .disconnected(.timeout)) = event else { return nil }
            return id
        }
        // Consent that was given long ago or never is asked for again.
        #expect(ended.map(\.index) == (offset == 0 ? [] : [0]))
    }

    @Test func `a transport that was not connected cannot be resumed`() throws {
        var call = try call()
        call.join(publications: [Media.video(2)])
        call.restart(after: 60)
        let ended = call.takeEvents().contains { event in
            if case .transport(let id, .disconnected) = event { id.index == 2 } else { false }
        }
        #expect(ended)
    }

    @Test func `what is resumed later keeps nobody waiting`() throws {
        var call = try call()
        send(1...20, in: &call)
        guard let life = call.life else { return }
        // The viewer's home comes later than the publisher's.
        let publisher = life.transportCommands { $0.index == 0 }
        call.restart(after: 60, publisher + [.postponeResumption])
        let isResuming = call.core.isResuming
        #expect(!isResuming)
        send(21...30, in: &call)
        #expect(call.peers[1].received.filter { $0.ssrc == 0xa200 }.count == 20)
        let viewer = life.transportCommands { $0.index == 1 }
        for command in viewer + life.routing + [.endResumption] { call.apply(command) }
        send(31...50, in: &call)
        let packets = call.peers[1].received.filter { $0.ssrc == 0xa200 }
        let numbers = packets.map { $0.u16(2) }
        try #require(numbers.count > 20)
        // Packets of the time in between are lost, and no number is used again.
        #expect(Array(numbers[..<20]).isContiguous && Array(numbers[20...]).isContiguous)
        let steps = zip(numbers, numbers.dropFirst()).map { $1 &- $0 }
        #expect(steps.allSatisfy { (1...20).contains($0) })
        #expect(call.peers[1].undecryptable == 0)
    }

    @Test func `a slot that is bound later than its transport goes on begins with a keyframe`()
        throws
    {
        for isLate in [false, true] {
            var call = try call()
            send(1...20, in: &call)
            guard let life = call.life else { return }
            call.restart(after: 60, [.postponeResumption])
            let requests = call.keyframeRequests(at: 0)
            for command in life.transportCommands(of: { _ in true }) { call.apply(command) }
            for command in life.routing {
                if isLate, case .bind = command { call.apply(.fence(epoch: 9)) }
                call.apply(command)
            }
            send(21...30, in: &call)
            #expect((call.keyframeRequests(at: 0) > requests) == isLate)
        }
    }

    @Test func `nothing is resumed after the end of the resumption`() throws {
        var call = try call()
        send(1...20, in: &call)
        guard let life = call.life else { return }
        let commands = life.transportCommands { _ in true }
        call.restart(after: 60, [.postponeResumption, .endResumption] + commands)
        let ended = call.takeEvents().filter { event in
            if case .transport(_, .disconnected) = event { true } else { false }
        }
        #expect(ended.count == 2)
    }

    @Test func `random bytes are no state, or one that resumes nothing`() throws {
        var noise = SeededRandom(seed: 5)
        var call = try call()
        sendSound(1, in: &call)
        for _ in 0..<300 {
            call.life?.scramble(&noise)
            call.restart(after: 1)
            call.run(milliseconds: 2)
        }
    }
}
