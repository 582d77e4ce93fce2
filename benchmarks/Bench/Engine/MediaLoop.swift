import CKernel
import Kernel
import LoadPeer
import RTP
import SFU
import Sockets
import WorkerInterface

/// All sockets and media of the bench in one thread; stored on that thread's stack.
struct MediaLoop: ~Copyable {
    /// Work from other threads, executed between two receive calls.
    typealias Work = @Sendable (inout MediaLoop) -> Void

    let context = SRTPContext()
    let settings: EngineSettings
    private let identity: DTLSIdentity
    private let sockets: [UDPSocket]
    private let mailbox: EngineMailbox
    private var poller: Poller
    private(set) var clients: [Client?] = []
    /// Publishers by room and participant, for the comparison with received packets.
    var publishers: [String: Publisher] = [:]
    private var publishing: [Client] = []
    private(set) var connected = 0
    private(set) var failure: String?
    private var output = Batch(capacity: 256)
    private var viewing: ViewerStatistics
    private var refusedSends: UInt64 = 0
    private var queueDrops: [UInt32]
    private var nextMedia = Instant(nanoseconds: .max)
    private var nextTick = Instant.monotonic()
    private var ticks = 0
    private var isEnded = false

    /// Creates the loop; `poller` comes from `watching`.
    init(
        _ settings: EngineSettings,
        identity: DTLSIdentity,
        sockets: [UDPSocket],
        mailbox: EngineMailbox,
        poller: consuming Poller
    ) {
        self.settings = settings
        self.identity = identity
        self.sockets = sockets
        self.mailbox = mailbox
        self.poller = poller
        viewing = ViewerStatistics(everyPacket: settings.checksEveryPacket)
        queueDrops = sockets.map { _ in 0 }
    }

    /// Creates a poller for the sockets and the mailbox.
    static func watching(
        _ sockets: [UDPSocket],
        _ mailbox: EngineMailbox
    ) throws(SystemError) -> Poller {
        let poller = try Poller()
        let descriptors = sockets.map(\.descriptor) + [mailbox.descriptor]
        for (index, descriptor) in descriptors.enumerated() {
            try poller.add(descriptor, for: .readable, token: UInt64(index))
        }
        return poller
    }

    /// Runs until `end` is called.
    mutating func run() {
        var inbox = Inbox()
        while !isEnded {
            let wake = min(nextMedia, nextTick)
            let count = poller.wait(until: wake, at: .monotonic())
            for index in 0..<count {
                let token = Int(poller[index].token)
                if token == sockets.count {
                    for work in mailbox.take() { work(&self) }
                } else {
                    receive(token, through: &inbox)
                }
            }
            let now = Instant.monotonic()
            publish(at: now)
            if nextTick <= now { tick(at: now) }
        }
        for client in clients {
            client?.wire.peer.close(into: &output)
            if let client { send(client) }
        }
    }

    mutating func end() { isEnded = true }

    private mutating func send(_ client: Client) { refusedSends += client.send(&output) }

    /// Processes received datagrams, and sends due media in between.
    private mutating func receive(_ number: Int, through inbox: inout Inbox) {
        let socket = sockets[number]
        // Bounded, so that other sockets and the mailbox get their turn.
        for _ in 0..<16 {
            guard inbox.receive(from: socket) == nil else { return }
            let now = Instant.monotonic()
            let offset = wallClockOffset()
            if let drops = inbox.queueDrops { queueDrops[number] = drops }
            for position in 0..<inbox.count {
                guard let client = client(at: inbox.local(position).address) else { continue }
                let stamp = inbox.arrival(position)
                let arrival = stamp == 0 ? now : Instant(nanoseconds: stamp &- offset)
                take(inbox[position], client, arrival: arrival, at: now)
            }
            publish(at: now)
            guard inbox.count == inbox.capacity else { return }
        }
    }

    private func client(at address: Address) -> Client? {
        let index =
            Int(address.low & 0xffff_ffff) - Int(EngineSettings.firstAddress)
            - settings.firstClient
        return clients.indices.contains(index) ? clients[index] : nil
    }

    private mutating func take(
        _ datagram: Span<UInt8>,
        _ client: Client,
        arrival: Instant,
        at now: Instant
    ) {
        if !client.slots.isEmpty, case .rtp = Datagram(datagram) {
            client.receiveRTP(datagram, &viewing, arrival: arrival, at: now, into: &output)
        } else {
            switch client.receive(datagram, at: now, into: &output) {
            case .connected: connected += 1
            case .failed: failure = "a DTLS handshake failed"
            case .nothing, .rtp, .rtcp, .undecryptable: break
            }
        }
        if output.count > 0 { send(client) }
    }

    private mutating func publish(at now: Instant) {
        guard nextMedia <= now else { return }
        nextMedia = Instant(nanoseconds: .max)
        for client in publishing {
            guard let publisher = client.publisher else { continue }
            publisher.skip(at: now)
            while let deadline = publisher.deadline, deadline <= now {
                publisher.expire(at: deadline, &client.wire, into: &output)
                send(client)
            }
            if let deadline = publisher.deadline { nextMedia = min(nextMedia, deadline) }
        }
    }

    /// Runs the timers of the peers, and sends each one's report once a second, spread over ticks.
    private mutating func tick(at now: Instant) {
        nextTick = now.advanced(milliseconds: 10)
        ticks += 1
        for (index, client) in clients.enumerated() {
            guard let client, !client.wire.isPlaintext else { continue }
            if let due = client.wire.peer.deadline, due <= now {
                client.wire.peer.expire(at: now, into: &output)
                send(client)
            }
            if index % 100 == ticks % 100, client.wire.isConnected, !client.slots.isEmpty {
                client.sendReport(at: now, into: &output)
                send(client)
            }
        }
    }
}

// Operations for other threads.
extension MediaLoop {
    /// Adds a client and starts connecting it.
    mutating func connect(_ local: LocalTransport, to remote: RemoteTransport, overhead: Int) {
        let index = Int(local.address.low & 0xffff_ffff) - Int(EngineSettings.firstAddress)
        let place = index - settings.firstClient
        let credentials: RemoteCredentials? =
            if case .full(let credentials) = remote.security { credentials } else { nil }
        let peer = LoadPeer(
            identity: identity,
            context: context,
            path: Path(remote: remote.address, local: 0),
            seed: local.seed,
            dtlsRole: credentials?.localDTLSRole ?? .client
        )
        let client = Client(
            ClientTransport(peer, isPlaintext: credentials == nil, overhead: overhead),
            socket: sockets[index % sockets.count],
            source: local.address.with(port: 0),
            seed: local.seed
        )
        while clients.count <= place { clients.append(nil) }
        clients[place] = client
        guard let credentials else {
            connected += 1
            return
        }
        client.wire.peer.connect(
            fragment: credentials.fragment,
            password: credentials.password,
            fingerprint: credentials.fingerprint,
            at: .monotonic(),
            into: &output
        )
        send(client)
    }

    /// Returns the client with these addresses.
    func client(_ local: LocalTransport) -> Client? { client(at: local.address) }

    /// Starts a client's media after `delay` nanoseconds.
    mutating func begin(_ client: Client, after delay: Int64) {
        let start = Instant.monotonic().advanced(nanoseconds: delay)
        client.publisher?.begin(at: start)
        publishing.append(client)
        nextMedia = min(nextMedia, start)
    }

    /// Lets every connected client queue datagrams; returns their number.
    ///
    /// They are sent from the address that `body` returns, or from the client's own for `nil`.
    mutating func sendForAll(_ body: (Client, inout Batch) -> Address?) -> Int {
        var count = 0
        for case let client? in clients where client.wire.isConnected {
            let source = body(client, &output)
            count += output.count
            refusedSends += client.send(&output, from: source)
        }
        return count
    }

    /// Ends all published media.
    mutating func endMedia() {
        for client in publishing { client.publisher?.end() }
    }

    /// Removes a client without notifying the SFU.
    mutating func remove(_ local: LocalTransport) {
        let place =
            Int(local.address.low & 0xffff_ffff) - Int(EngineSettings.firstAddress)
            - settings.firstClient
        guard clients.indices.contains(place), let client = clients[place] else { return }
        if client.wire.isConnected { connected -= 1 }
        publishing.removeAll { $0 === client }
        clients[place] = nil
    }

    /// Returns all counts, and the latency since the previous snapshot.
    mutating func snapshot() -> Snapshot {
        var snapshot = Snapshot(at: .monotonic())
        for case let client? in clients {
            for slot in client.slots {
                if slot.medium == .audio {
                    snapshot.audio += slot.total
                } else {
                    snapshot.video += slot.total
                }
            }
            snapshot.longestPause = max(
                snapshot.longestPause,
                client.takeLongestPause(at: snapshot.at)
            )
            if let publisher = client.publisher { snapshot.publishers += publisher.tally }
            snapshot.retransmissions += client.retransmissions
            snapshot.unsignalledPackets += client.unsignalledPackets
            snapshot.senderReports += client.senderReports
            snapshot.undecryptableReports += client.undecryptableReports
            if let frames = client.frames { snapshot.frames = frames }
        }
        snapshot.connected = connected
        snapshot.audioLatency = viewing.audio
        snapshot.videoLatency = viewing.video
        snapshot.arrivals = viewing.arrivals
        viewing.forget()
        snapshot.refusedSends = refusedSends
        snapshot.queueDrops = queueDrops.reduce(0) { $0 + UInt64($1) }
        snapshot.ownNanoseconds = kernel_thread_nanoseconds()
        return snapshot
    }
}
