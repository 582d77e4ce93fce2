import LoadPeer
import RTP
import Testing

@testable import SFU
@testable import WorkerInterface

/// Paths that end by themselves, as TCP connections do.
struct PathLossTests {
    private static func connection(_ number: UInt16) -> Path {
        Path(
            remote: Address(ipv4: 0x7f00_0001, port: 40_000),
            local: Path.firstConnection | number
        )
    }

    /// Takes the transport events since the last call.
    private static func changes(_ call: inout Call) -> [WorkerEvent] {
        call.takeEvents().filter { if case .transport = $0 { true } else { false } }
    }

    @Test func `media goes over a connection, and back to UDP when that has ended`() throws {
        var call = try ForwardingTests.call()
        let udp = call.peers[1].path
        call.sendVideo(sequence: 1, pictureID: 1, isKeyframe: true)
        #expect(call.peers[1].received.count == 1)
        call.peers[1].path = Self.connection(1)
        call.check(from: 1)
        let isValidated = call.core.isValidated(Self.connection(1))
        #expect(isValidated)
        call.sendVideo(sequence: 2, pictureID: 2, isKeyframe: false)
        #expect(call.peers[1].received.count == 2)
        call.core.lose(Self.connection(1), at: call.now)
        let isForgotten = !call.core.isValidated(Self.connection(1))
        #expect(isForgotten)
        call.peers[1].path = udp
        call.sendVideo(sequence: 3, pictureID: 3, isKeyframe: false)
        #expect(call.peers[1].received.count == 3)
        #expect(call.misdirected == 0)
        #expect(call.numbers(at: 1).isContiguous)
    }

    @Test(.timeLimit(.minutes(10)))
    func `without a path a transport waits, and liveness decides`() throws {
        var call = try ForwardingTests.call()
        call.sendVideo(sequence: 1, pictureID: 1, isKeyframe: true)
        _ = call.takeEvents()
        let id = call.peers[1].id
        call.silent = [1]
        call.core.lose(call.peers[1].path, at: call.now)
        let sent = call.peers[1].datagrams
        // Timers of the path must not keep the worker busy meanwhile.
        for step in 0..<70 {
            call.run(milliseconds: 100)
            let isBusy = call.core.deadline.map { $0 <= call.now } ?? true
            #expect(!isBusy)
            if step % 10 == 0 {
                call.sendVideo(
                    sequence: UInt16(2 + step),
                    pictureID: UInt16(2 + step),
                    isKeyframe: false
                )
            }
        }
        #expect(Self.changes(&call).isEmpty)
        #expect(call.peers[1].datagrams == sent)
        call.run(milliseconds: 2_000)
        #expect(Self.changes(&call) == [.transport(id, .reconnecting)])
        // A new connection brings it back.
        call.silent = []
        call.peers[1].path = Self.connection(2)
        call.check(from: 1)
        #expect(Self.changes(&call) == [.transport(id, .reconnected)])
        let received = call.peers[1].received.count
        call.sendVideo(sequence: 100, pictureID: 100, isKeyframe: true)
        #expect(call.peers[1].received.count > received)
        #expect(call.misdirected == 0)
    }

    @Test func `the end of an unused path is ignored`() throws {
        var call = try ForwardingTests.call()
        call.core.lose(Self.connection(3), at: call.now)
        call.core.lose(.from(port: 9), at: call.now)
        call.sendVideo(sequence: 1, pictureID: 1, isKeyframe: true)
        #expect(call.peers[1].received.count == 1)
    }

    @Test func `a path that another transport has taken over stays with it`() throws {
        var call = try ForwardingTests.call()
        call.join(slots: [Media.slot(5, ssrc: 0xcccc)])
        let shared = Self.connection(4)
        call.peers[1].path = shared
        call.check(from: 1)
        call.peers[1].path = .from(port: 6_543)
        call.peers[2].path = shared
        call.connect(2)
        call.core.lose(shared, at: call.now)
        call.sendVideo(sequence: 1, pictureID: 1, isKeyframe: true)
        let (undecryptable, received) = (call.peers[2].undecryptable, call.peers[2].received.count)
        #expect(undecryptable == 0)
        #expect(received == 0)
    }
}
