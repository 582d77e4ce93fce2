import CKernel
import ControlPlane
import Kernel
import LoadPeer
import RTP
import Testing

@testable import Daemon
@testable import SFU
@testable import Sockets
@testable import WorkerInterface

/// Two workers on threads of their own, and a room that spans them.
struct RelayWorkerTests {
    @Test func `only a sleeping worker is woken, and once`() throws {
        let bell = try RelayWakeup()
        var poller = try Poller()
        try poller.add(bell.descriptor, for: .readable, token: 1)
        let now = Instant.monotonic()
        bell.ring()
        #expect(poller.wait(until: now, at: now) == 0)
        bell.arm()
        bell.ring()
        bell.ring()
        #expect(poller.wait(until: now, at: now) == 1)
        bell.resetWakeup()
        bell.ring()
        #expect(poller.wait(until: now, at: now) == 0)
        bell.arm()
        bell.disarm()
        bell.ring()
        #expect(poller.wait(until: now, at: now) == 0)
    }

    /// Each packet is sent after the previous one has arrived, so every one has to wake a worker.
    @Test func `a packet wakes the worker that it is handed to`() throws {
        let pair = try WorkerPair()
        defer { pair.end() }
        let left = try Client(0, of: pair, seed: 1)
        let right = try Client(1, of: pair, seed: 2)
        try left.connect(to: pair)
        try right.connect(to: pair)
        pair.wire()
        for number in 0..<200 as Range<UInt16> {
            left.send(number)
            #expect(try right.receive())
            right.send(number)
            #expect(try left.receive())
        }
        #expect(left.received == 200 && right.received == 200)
    }
}

/// Two running workers with rings between them.
private final class WorkerPair {
    let identity: DTLSIdentity
    let sockets: [UDPSocket]
    let workers: [Worker]

    init() throws {
        let identity = try DTLSIdentity()
        let sockets = try (0..<2).map { _ in
            try UDPSocket.open(Address(ipv4: 0x7f00_0001, port: 0))
        }
        let relays = try RelayNetwork(workers: 2)
        workers = try (0..<2).map { index in
            let setup = Worker.Setup(
                index: index,
                sockets: [sockets[index]],
                limits: .default,
                identity: identity,
                engine: .best,
                relays: relays,
                log: Log(level: .error, descriptor: kernel_open_null())
            )
            return try Worker(setup)
        }
        self.identity = identity
        self.sockets = sockets
    }

    /// Subscribes the client of each worker to the other's publication.
    func wire() {
        for home in 0..<2 {
            let other = 1 - home
            let mirror = PublicationID(index: 7, generation: 1)
            var configuration = Client.publication
            configuration.id = mirror
            let source = RelayTarget(worker: home, publication: Client.publication.id)
            let made = Mirror(configuration: configuration, home: source, open: true)
            let binding = Binding(publication: mirror, subscription: 1, open: true)
            workers[other].commands.post([.mirror(made), .bind(Client.slot.id, binding)])
            let target = RelayTarget(worker: other, publication: mirror)
            workers[home].commands.post([
                .gate(Client.publication.id, open: true),
                .relay(Client.publication.id, to: [target]),
            ])
        }
        // Each gets commands as the other's home, too: the fences come after all of them.
        for worker in workers { worker.commands.post([.fence(epoch: 1)]) }
        for worker in workers {
            try? WorkerTests.events(of: worker) { if case .fenced = $0 { true } else { false } }
        }
    }

    func end() {
        for worker in workers { worker.commands.close() }
        for worker in workers {
            while !worker.events.drain().closed { pause() }
        }
        for socket in sockets { socket.close() }
    }

    /// Lets the workers run for a moment.
    private func pause() {
        guard var poller = try? Poller() else { return }
        let now = Instant.monotonic()
        _ = poller.wait(until: now.advanced(milliseconds: 1), at: now)
    }
}

/// A peer with a socket: it sends one audio stream and receives one.
private final class Client {
    private let worker: Int
    private let socket: UDPSocket
    private var peer: LoadPeer
    private var poller: Poller
    private var inbox = Inbox()
    private var output = Batch(capacity: 64)
    private var udpSender: UDPSender
    private(set) var received = 0

    static let opus = FormatMapping(format: MediaFormat(codec: .opus), payloadType: 111)
    static let publication = PublicationConfiguration(
        id: PublicationID(index: 0, generation: 1),
        mid: "0",
        kind: .audio,
        formats: [opus],
        extensions: ExtensionMap(),
        encodings: [EncodingConfiguration(ssrc: SSRC(rawValue: 0x1111))]
    )
    static let slot = SlotConfiguration(
        id: SlotID(index: 0, generation: 1),
        mid: "1",
        kind: .audio,
        ssrc: SSRC(rawValue: 0x2222),
        rtxSSRC: nil,
        formats: [opus],
        extensions: ExtensionMap()
    )

    init(_ worker: Int, of pair: WorkerPair, seed: UInt64) throws {
        self.worker = worker
        socket = try UDPSocket.open(Address(ipv4: 0x7f00_0001, port: 0))
        udpSender = UDPSender([socket])
        poller = try Poller()
        try poller.add(socket.descriptor, for: .readable, token: 0)
        peer = LoadPeer(
            identity: pair.identity,
            context: SRTPContext(engine: .best),
            path: Path(remote: pair.sockets[worker].address, local: 0),
            seed: seed
        )
    }

    deinit { socket.close() }

    func connect(to pair: WorkerPair) throws {
        let configuration = peer.workerTransport(
            pair.identity,
            [Self.publication],
            [Self.slot]
        )
        let id = TransportID(index: 0, generation: 1)
        pair.workers[worker].commands.post([.configure(id, configuration), .fence(epoch: 0)])
        try WorkerTests.events(of: pair.workers[worker]) {
            if case .fenced = $0 { true } else { false }
        }
        peer.connect(
            fragment: LoadPeer.workerFragment,
            password: LoadPeer.workerPassword,
            fingerprint: pair.identity.fingerprint,
            at: .monotonic(),
            into: &output
        )
        flush()
        try #require(wait { $0.peer.isConnected }, "no handshake")
    }

    /// Sends an audio packet.
    func send(_ number: UInt16) {
        var packet: [UInt8] = [0x80, 111, UInt8(number >> 8), UInt8(number & 0xff)]
        packet += [0, 0, UInt8(number >> 8), UInt8(number & 0xff), 0, 0, 0x11, 0x11]
        packet += Array(repeating: 0x5a, count: 80)
        peer.sendRTP(packet.span, index: UInt64(number), into: &output)
        flush()
    }

    /// Waits for one more packet.
    func receive() throws -> Bool {
        let before = received
        return wait { $0.received > before }
    }

    /// Serves the socket until `isDone`; gives up after ten seconds.
    private func wait(_ isDone: (Client) -> Bool) -> Bool {
        let end = Instant.monotonic().advanced(milliseconds: 10_000)
        while !isDone(self) {
            var now = Instant.monotonic()
            guard now < end else { return false }
            let due = peer.deadline ?? end
            _ = poller.wait(until: min(due, end), at: now)
            now = .monotonic()
            peer.expire(at: now, into: &output)
            while inbox.receive(from: socket) == nil {
                for index in 0..<inbox.count {
                    let found = peer.receive(inbox[index], at: now, into: &output)
                    if case .rtp = found { received += 1 }
                }
            }
            flush()
        }
        return true
    }

    private func flush() {
        udpSender.send(&output, from: LocalAddresses([socket]), at: .monotonic())
    }
}
