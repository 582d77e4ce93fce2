import LoadPeer
import RTP
import SFU
import WorkerInterface

/// A worker's core and its peers on a network without loss or delay, in virtual time.
struct Call: ~Copyable {
    var core: Core
    /// This worker's ends of the rings to other workers' calls; a single worker has none.
    var relays = RelayMesh(workers: 1).port(of: 0)
    var now = Instant(nanoseconds: 1_000_000_000_000)
    var output = Batch(capacity: 256)
    var peers: [Peer] = []
    /// Whether the network loses a datagram; called for each, with its direction.
    var loses: (_ toCore: Bool, _ datagram: [UInt8]) -> Bool = { _, _ in false }
    /// Observes each datagram that leaves the core for a peer, lost or not.
    var inspects: (_ peer: Peer, _ datagram: [UInt8]) -> Void = { _, _ in }
    /// Number of datagrams that went to an address without a peer.
    private(set) var misdirected = 0
    /// Of these, the RTP and RTCP datagrams; below, the bytes of all.
    private(set) var misdirectedMedia = 0
    private(set) var misdirectedBytes = 0
    /// Memory of the core that a crash does not end, and the state that commands have made.
    var life: Life?
    /// Peers whose network is down.
    var silent: Set<Int> = []
    /// Whether the peer at a path answers our checks.
    var answers: (_ path: Path) -> Bool = { _ in true }
    /// Parts that peers leave out of their packets.
    var staleMedia = StaleMedia.nothing
    let identity: DTLSIdentity
    var transportSequence: UInt16 = 0
    private let context = SRTPContext(engine: .best)
    private(set) var events: [WorkerEvent] = []

    /// A peer and its received packets, decrypted.
    final class Peer {
        var peer: LoadPeer
        let id: TransportID
        var path: Path
        var configuration: TransportConfiguration
        var received: [[UInt8]] = []
        var reports: [[UInt8]] = []
        var undecryptable = 0
        var datagrams = 0
        var isRefused = false

        init(
            peer: consuming LoadPeer,
            id: TransportID,
            path: Path,
            configuration: TransportConfiguration
        ) {
            self.peer = peer
            self.id = id
            self.path = path
            self.configuration = configuration
        }

        /// Takes the received RTCP, and returns the SSRCs that it asks keyframes of.
        func takeKeyframeRequests() -> [UInt32] {
            defer { reports.removeAll(keepingCapacity: true) }
            return reports.flatMap { report in
                var requested: [UInt32] = []
                var blocks = RTCPBlocks(report.span)
                while let block = blocks.next() {
                    guard block.type == RTCPType.payloadFeedback, block.count == 1,
                        let loss = try? PictureLossIndication(block)
                    else { continue }
                    requested.append(loss.media.rawValue)
                }
                return requested
            }
        }
    }

    init(
        seed: UInt64 = 1,
        limits: CoreLimits = .default,
        profiles: [SRTPProfile] = DTLSIdentity.profiles,
        engine: SRTPEngine = .best,
        isSaved: Bool = false
    ) throws {
        identity = try DTLSIdentity(profiles: profiles)
        life = isSaved ? Life(limits: limits, engine: engine) : nil
        core = Core(
            limits: limits,
            seed: seed,
            identity: identity,
            engine: engine,
            memory: life?.memory
        )
        core.setWallClock(offsetNanoseconds: 1_700_000_000_000_000_000)
    }

    /// Adds a peer with its m-lines and registers it with the core.
    @discardableResult
    mutating func join(
        publications: [PublicationConfiguration] = [],
        slots: [SlotConfiguration] = [],
        reducedSize: Bool = true,
        role: DTLSRole = .server,
        fingerprints: [Fingerprint]? = nil
    ) -> Int {
        let index = peers.count
        let path = Path(
            remote: Address(ipv4: 0x7f00_0001, port: UInt16(10_000 + index)),
            local: 0
        )
        let peer = LoadPeer(
            identity: identity,
            context: context,
            path: path,
            seed: UInt64(index + 1),
            dtlsRole: role == .server ? .client : .server
        )
        let id = TransportID(index: UInt32(index), generation: 1)
        let configuration = TransportConfiguration(
            ice: ICECredentials(
                localFragment: "core\(index)",
                localPassword: "corepassword\(index)-0123456789",
                remoteFragment: peer.localFragment,
                remotePassword: peer.localPassword
            ),
            dtlsRole: role,
            fingerprints: fingerprints ?? [identity.fingerprint],
            reducedSizeRTCP: reducedSize,
            cname: "sfud",
            publications: publications,
            slots: slots
        )
        peers.append(Peer(peer: peer, id: id, path: path, configuration: configuration))
        apply(.configure(id, configuration))
        return index
    }

    /// Lets a peer make its checks and handshake.
    mutating func connect(_ index: Int) {
        var sent = Batch(capacity: 64)
        peers[index].peer.connect(
            fragment: "core\(index)",
            password: "corepassword\(index)-0123456789",
            fingerprint: identity.fingerprint,
            at: now,
            into: &sent
        )
        deliver(&sent, from: index)
        for _ in 0..<50 where !peers[index].peer.isConnected { run(milliseconds: 10) }
    }

    mutating func apply(_ command: WorkerCommand) {
        life?.note(command)
        core.apply(command, at: now, into: &output)
        settle()
    }

    /// Gives a peer's datagrams to the core, and the core's answers to the peer.
    mutating func deliver(_ sent: inout Batch, from index: Int) {
        for position in 0..<sent.count where !silent.contains(index) {
            let datagram = sent[position]
            if loses(true, Array(datagram.indices.map { datagram[$0] })) { continue }
            core.receive(
                datagram,
                on: peers[index].path,
                at: now,
                staleMedia: staleMedia,
                into: &output
            )
            if output.free < 32 { settle() }
        }
        sent.removeAll()
        settle()
    }

    /// Delivers the core's output to the peers until there is none left.
    mutating func settle() {
        core.relay(into: &relays, at: now)
        for other in 0..<relays.workers { _ = relays.publish(to: other) }
        var more = true
        while more {
            more = core.flush(into: &output, at: now)
            distribute()
        }
        while let event = core.takeEvent() { events.append(event) }
    }

    private mutating func distribute() {
        while output.count > 0 {
            var replies: [(Int, [[UInt8]])] = []
            for position in 0..<output.count {
                let path = output.path(at: position)
                guard let index = peers.firstIndex(where: { $0.path == path }) else {
                    misdirected += 1
                    let (length, first) = (output[position].count, output[position][0])
                    misdirectedBytes += length
                    if first >> 6 == 2 { misdirectedMedia += 1 }
                    continue
                }
                let datagram = Array(output[position].indices.map { output[position][$0] })
                if let life, !life.letsOut() { continue }
                inspects(peers[index], datagram)
                if silent.contains(index) || loses(false, datagram) { continue }
                let isCheck = datagram[0] == 0 && datagram[1] == 1
                if isCheck, !answers(path) { continue }
                let taken = take(datagram, at: index)
                if !taken.isEmpty { replies.append((index, taken)) }
            }
            output.removeAll()
            for (index, datagrams) in replies {
                for datagram in datagrams {
                    core.receive(datagram.span, on: peers[index].path, at: now, into: &output)
                }
            }
        }
    }

    /// Gives a peer a datagram; returns its answers.
    func take(_ datagram: [UInt8], at index: Int) -> [[UInt8]] {
        var answers = Batch(capacity: 16)
        let peer = peers[index]
        peer.datagrams += 1
        switch peer.peer.receive(datagram.span, at: now, into: &answers) {
        case .rtp(let length): peer.received.append(peer.peer.clear(length: length))
        case .rtcp(let length): peer.reports.append(peer.peer.clear(length: length))
        case .undecryptable: peer.undecryptable += 1
        case .failed: peer.isRefused = true
        case .nothing, .connected: break
        }
        return (0..<answers.count).map { position in
            answers[position].indices.map { answers[position][$0] }
        }
    }

    /// Advances the clock and runs all timers on both sides.
    mutating func run(milliseconds: Int64) {
        let end = now.advanced(milliseconds: milliseconds)
        while now < end {
            now = now.advanced(milliseconds: 1)
            while core.expire(at: now, into: &output) {}
            settle()
            for index in peers.indices {
                guard let due = peers[index].peer.deadline, due <= now else { continue }
                var sent = Batch(capacity: 16)
                peers[index].peer.expire(at: now, into: &sent)
                deliver(&sent, from: index)
            }
        }
    }

    /// Encrypts and delivers one RTP packet.
    mutating func send(_ packet: [UInt8], from index: Int, rollover: UInt64 = 0) {
        let sequence = UInt64(packet[2]) << 8 | UInt64(packet[3])
        var sent = Batch(capacity: 2)
        peers[index].peer.sendRTP(packet.span, index: rollover << 16 | sequence, into: &sent)
        deliver(&sent, from: index)
    }

    /// Encrypts RTP packets, each with its roll-over counter, and delivers them in one batch.
    mutating func send(_ packets: [(bytes: [UInt8], rollover: UInt64)], from index: Int) {
        var sent = Batch(capacity: packets.count)
        for (bytes, rollover) in packets {
            let number = rollover << 16 | UInt64(bytes[2]) << 8 | UInt64(bytes[3])
            peers[index].peer.sendRTP(bytes.span, index: number, into: &sent)
        }
        deliver(&sent, from: index)
    }

    mutating func sendRTCP(from index: Int, _ fill: (inout OutputSpan<UInt8>) -> Void) {
        var sent = Batch(capacity: 2)
        peers[index].peer.sendRTCP(into: &sent, fill)
        deliver(&sent, from: index)
    }

    mutating func takeEvents() -> [WorkerEvent] {
        defer { events = [] }
        return events
    }

    mutating func statistics() -> WorkerStatistics {
        apply(.report(token: 0))
        for case .statistics(_, let statistics) in events.reversed() { return statistics }
        return WorkerStatistics()
    }
}
