import LoadPeer
import RTP
import Testing

@testable import SFU
@testable import WorkerInterface

/// Speech detection in a worker, and the first words of a new active speaker.
struct SpeechTests {
    static let audio = PublicationID(index: 0, generation: 1)
    static let slot = SlotID(index: 1, generation: 1)

    /// A publisher of audio, a viewer with an audio slot, and the publisher's speech events.
    struct Scene: ~Copyable {
        var call: Call
        var sequence: UInt16 = 0
        var events: [WorkerEvent] = []

        init(limits: CoreLimits = .default) throws {
            call = try Call(limits: limits)
            call.join(publications: [Media.audio(0)])
            call.join(slots: [Media.slot(1, kind: .audio, ssrc: 0xbbbb)])
            call.connect(0)
            call.connect(1)
            _ = call.takeEvents()
        }

        /// Sends packets of 20 ms with these levels, each with its number in its payload.
        ///
        /// - Returns: The first speech event, and the number of the packet that caused it.
        @discardableResult
        mutating func say(_ levels: [AudioLevel]) -> (began: Instant, step: UInt16)? {
            var first: (began: Instant, step: UInt16)?
            for level in levels {
                send(level.level)
                call.run(milliseconds: 20)
                for event in call.takeEvents() {
                    events.append(event)
                    guard case .speech(_, .began(let start)) = event, first == nil else {
                        continue
                    }
                    first = (start, sequence &- 1)
                }
                if first != nil { return first }
            }
            return nil
        }

        mutating func send(_ level: UInt8) {
            call.send(packet(level), from: 0)
            sequence &+= 1
        }

        func packet(_ level: UInt8) -> [UInt8] {
            Media.packet(
                payloadType: 111,
                sequence: sequence,
                timestamp: UInt32(sequence) * 960,
                ssrc: 0x1111,
                elements: [(1, [level]), (4, Array("0".utf8))],
                payload: [0x78] + sequence.bytes + Array(repeating: 0x55, count: 60)
            )
        }

        mutating func bind(from start: Instant?) {
            call.apply(.bind(SpeechTests.slot, SpeechTests.binding(from: start)))
        }

        /// Numbers of the packets that the viewer has received, in order.
        var heard: [UInt16] { call.peers[1].payloads(of: 0xbbbb).map { $0.u16(1) } }
        var numbers: [UInt16] { call.peers[1].numbers(of: 0xbbbb) }
    }

    static func binding(from start: Instant?) -> Binding {
        var binding = Binding(publication: audio, subscription: 7, open: true)
        binding.from = start
        return binding
    }

    /// Returns half a second of a quiet room, then a sentence.
    static func sentence(seed: UInt64) -> [AudioLevel] {
        var traces = LevelTraces(seed: seed)
        let quiet = LevelTraces.Sound.silence(milliseconds: 500)
        return traces.microphone([quiet + traces.speech(milliseconds: 2_000)])
    }

    @Test(arguments: 0..<20 as Range<UInt64>)
    func `a listener switched to a talker gets the first syllable`(seed: UInt64) throws {
        var scene = try Scene()
        let begin = scene.call.now
        let found = scene.say(Self.sentence(seed: seed))
        let (start, step) = try #require(found)
        #expect(scene.heard.isEmpty)
        scene.bind(from: start.advanced(milliseconds: -20))
        let promoted = scene.call.now
        for _ in 0..<20 {
            scene.send(20)
            scene.call.run(milliseconds: 20)
        }
        // Speech begins with packet 25, 500 ms in.
        let first = try #require(scene.heard.first)
        #expect(first <= 27, "from \(first), known at \(step)")
        #expect(promoted.milliseconds(since: begin) < 500 + 400)
        #expect(scene.heard == Array(first..<scene.sequence))
        #expect(scene.numbers.isContiguous)
        // Each packet is played at its own time: 20 ms of sound in each.
        let times = scene.call.peers[1].received.filter { $0.ssrc == 0xbbbb }.map { $0.u32(4) }
        #expect(zip(times, times.dropFirst()).allSatisfy { $1 &- $0 == 960 })
    }

    @Test func `without a start time a listener begins with live packets`() throws {
        var scene = try Scene()
        let found = scene.say(Self.sentence(seed: 3))
        _ = try #require(found)
        scene.bind(from: nil)
        let next = scene.sequence
        scene.send(20)
        #expect(scene.heard == [next])
    }

    @Test func `packets of the current batch are sent once`() throws {
        var scene = try Scene()
        let found = scene.say(Self.sentence(seed: 4))
        let (start, _) = try #require(found)
        var sent = Batch(capacity: 4)
        let packet = scene.packet(20)
        let index = UInt64(scene.sequence)
        scene.call.peers[0].peer.sendRTP(packet.span, index: index, into: &sent)
        scene.sequence &+= 1
        let path = scene.call.peers[0].path
        let now = scene.call.now
        // The batch is not sent before the command, as when packets of other workers wait.
        scene.call.core.receive(sent[0], on: path, at: now, into: &scene.call.output)
        scene.bind(from: start)
        scene.send(20)
        #expect(scene.heard.last == scene.sequence &- 1)
        #expect(scene.heard == Array(try #require(scene.heard.first)..<scene.sequence))
        #expect(scene.numbers.isContiguous)
    }

    @Test func `A0-6 held audio does not leave after the gate has closed`() throws {
        for reopens in [false, true] {
            var scene = try Scene()
            let found = scene.say(Self.sentence(seed: 5))
            let (start, _) = try #require(found)
            // All at once, as commands of several calls may arrive.
            let now = scene.call.now
            let commands: [WorkerCommand] =
                [
                    .bind(Self.slot, Self.binding(from: start)),
                    .gate(Self.audio, open: false),
                ] + (reopens ? [.gate(Self.audio, open: true)] : [])
            for command in commands {
                scene.call.core.apply(command, at: now, into: &scene.call.output)
            }
            scene.call.settle()
            #expect(scene.heard.isEmpty)
            #expect(scene.call.takeEvents().contains(.speech(Self.audio, .ended)))
            scene.bind(from: nil)
            scene.bind(from: start)
            #expect(scene.heard.isEmpty)
        }
    }

    @Test func `A0-6 speech behind a closed gate is not detected`() throws {
        var scene = try Scene()
        scene.call.apply(.gate(Self.audio, open: false))
        #expect(scene.say(Self.sentence(seed: 6)) == nil)
        scene.call.apply(.gate(Self.audio, open: true))
        let found = scene.say(Self.sentence(seed: 6))
        _ = try #require(found)
        scene.call.apply(.gate(Self.audio, open: false))
        #expect(scene.call.takeEvents() == [.speech(Self.audio, .ended)])
        #expect(scene.call.statistics().isBalanced)
    }

    @Test func `silence without packets ends speech too`() throws {
        var scene = try Scene()
        let found = scene.say(Self.sentence(seed: 7))
        _ = try #require(found)
        scene.call.run(milliseconds: 3_000)
        #expect(scene.call.takeEvents().contains(.speech(Self.audio, .ended)))
        scene.call.run(milliseconds: 3_000)
        #expect(scene.call.takeEvents().isEmpty)
    }

    @Test func `little audio is held for silent publishers, 400 ms for others`() throws {
        var scene = try Scene()
        let before = scene.call.occupancy.packets
        for _ in 0..<50 {
            scene.send(90)
            scene.call.run(milliseconds: 20)
        }
        #expect(scene.call.occupancy.packets - before <= 5)
        let found = scene.say(Self.sentence(seed: 8))
        _ = try #require(found)
        for _ in 0..<50 {
            scene.send(20)
            scene.call.run(milliseconds: 20)
        }
        #expect((19...21).contains(scene.call.occupancy.packets - before))
        scene.call.run(milliseconds: 2_000)
        #expect(scene.call.occupancy.packets == before)
    }

    @Test func `RED counts by its primary, and by its level`() throws {
        var scene = try Scene()
        let red = FormatMapping(format: MediaFormat(codec: .red), payloadType: 63)
        scene.call.reconfigure(0) { $0.publications[0].formats.insert(red, at: 0) }
        var events: [WorkerEvent] = []
        for level in Self.sentence(seed: 9) {
            let packet = Media.packet(
                payloadType: 63,
                sequence: scene.sequence,
                timestamp: UInt32(scene.sequence) * 960,
                ssrc: 0x1111,
                elements: [(1, [level.level]), (4, Array("0".utf8))],
                payload: [111, 0x78] + Array(repeating: 0x55, count: 60)
            )
            scene.call.send(packet, from: 0)
            scene.sequence &+= 1
            scene.call.run(milliseconds: 20)
            events += scene.call.takeEvents()
        }
        #expect(events.contains { if case .speech(_, .began) = $0 { true } else { false } })
    }
}
