import LoadPeer
import RTP
import Testing

@testable import SFU
@testable import WorkerInterface

/// First words of an active speaker for listeners on another worker.
struct RelayedSpeechTests {
    static let mirror = RelayedCall.mirrorID(0)
    static let target = RelayTarget(worker: 1, publication: mirror)

    /// Makes a publisher on the first worker, and a listener on the second that is not subscribed.
    private static func call() throws -> RelayedCall {
        let call = try RelayedCall(workers: 2)
        call.workers[0].call.join(publications: [Media.audio(0)])
        call.workers[1].call.join(slots: [Media.slot(1, kind: .audio, ssrc: 0xbbbb)])
        for worker in call.workers { worker.call.connect(0) }
        call.alignClocks()
        return call
    }

    private static func send(_ sequence: inout UInt16, _ call: borrowing RelayedCall) {
        let packet = Media.packet(
            payloadType: 111,
            sequence: sequence,
            timestamp: UInt32(sequence) * 960,
            ssrc: 0x1111,
            elements: [(1, [20 + UInt8(sequence % 3)]), (4, Array("0".utf8))],
            payload: [0x78] + sequence.bytes + Array(repeating: 0x55, count: 60)
        )
        call.workers[0].call.send(packet, from: 0)
        sequence &+= 1
    }

    /// Sends both workers the commands that make the speaker heard.
    private static func promote(
        from start: Instant
    ) -> (home: [WorkerCommand], listener: [WorkerCommand]) {
        let source = RelayTarget(worker: 0, publication: SpeechTests.audio)
        var configuration = Media.audio(0)
        configuration.id = mirror
        var made = Mirror(configuration: configuration, home: source, open: true)
        made.from = start
        var binding = Binding(publication: mirror, subscription: 7, open: true)
        binding.from = start
        return (
            [.relay(SpeechTests.audio, to: [target]), .hold(SpeechTests.audio, for: target)],
            [.mirror(made), .bind(SpeechTests.slot, binding)]
        )
    }

    /// The worker that gets its commands first, and the packets that arrive before the other does.
    static let orders = [(0, 0), (1, 0), (0, 1), (1, 1), (0, 3), (1, 3)]

    @Test(arguments: orders)
    func `the first words come through whichever worker is first`(
        first: Int,
        between: Int
    ) throws {
        var call = try Self.call()
        var sequence: UInt16 = 0
        for _ in 0..<20 {
            Self.send(&sequence, call)
            call.run(milliseconds: 20)
        }
        let start = call.workers[0].call.now.advanced(milliseconds: -205)
        let commands = Self.promote(from: start)
        for worker in [first, 1 - first] {
            for command in worker == 0 ? commands.home : commands.listener {
                call.workers[worker].call.apply(command)
            }
            guard worker == first else { continue }
            for _ in 0..<between {
                call.exchange()
                call.run(milliseconds: 20)
                Self.send(&sequence, call)
            }
        }
        for _ in 0..<20 {
            call.run(milliseconds: 20)
            Self.send(&sequence, call)
        }
        call.run(milliseconds: 20)
        let heard = call.workers[1].call.peers[0].payloads(of: 0xbbbb).map { $0.u16(1) }
        // Packet 10 arrived 205 ms before packet 20.
        #expect(heard == Array(10..<sequence))
        #expect(call.workers[1].call.numbers(at: 0, ssrc: 0xbbbb).isContiguous)
        let statistics = call.statistics()
        #expect(statistics.allSatisfy { $0.isBalanced && $0.relaysAreBalanced })
    }

    @Test func `a mirror that never asks is served after a while`() throws {
        var call = try Self.call()
        var sequence: UInt16 = 0
        Self.send(&sequence, call)
        var commands = Self.promote(from: call.workers[0].call.now)
        commands.listener = commands.listener.map { command in
            guard case .mirror(var mirror) = command else { return command }
            mirror.from = nil
            return .mirror(mirror)
        }
        for command in commands.listener { call.workers[1].call.apply(command) }
        for command in commands.home { call.workers[0].call.apply(command) }
        for _ in 0..<20 {
            call.run(milliseconds: 20)
            Self.send(&sequence, call)
        }
        call.run(milliseconds: 20)
        let heard = call.workers[1].call.peers[0].payloads(of: 0xbbbb).map { $0.u16(1) }
        #expect((4...8).contains(heard.first ?? 0))
        #expect(heard == Array((heard.first ?? 0)..<sequence))
    }

    @Test func `A0-6 no held audio enters a ring after the gate has closed`() throws {
        var call = try Self.call()
        var sequence: UInt16 = 0
        for _ in 0..<10 {
            Self.send(&sequence, call)
            call.run(milliseconds: 20)
        }
        let commands = Self.promote(from: call.workers[0].call.now.advanced(milliseconds: -200))
        for command in commands.home { call.workers[0].call.apply(command) }
        call.workers[0].call.apply(.gate(SpeechTests.audio, open: false))
        for command in commands.listener { call.workers[1].call.apply(command) }
        call.run(milliseconds: 200)
        #expect(call.workers[1].call.peers[0].received.isEmpty)
        #expect(call.statistics()[0].relayedOut == 0)
    }
}
