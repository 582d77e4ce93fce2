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
    }

    init(
        seed: UInt64 = 1,
        limits: CoreLimits = .default,
        profiles: [SRTPProfile] = DTLSIdentity.profiles,
        engine: SRTPEngine = .best
    ) throws {
        identity = try DTLSIdentity(profiles: profiles)
        core = Core(limits: limits, seed: seed, identity: identity, engine: engine)
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

/// Configurations and packets as Chromium sends them.
enum Media {
    static let opus = FormatMapping(
        format: MediaFormat(codec: .opus),
        payloadType: 111,
        feedback: .transportWide
    )
    static let vp8 = FormatMapping(
        format: MediaFormat(codec: .vp8),
        payloadType: 96,
        rtxPayloadType: 97,
        feedback: [.nack, .pictureLoss, .fullIntraRequest, .transportWide]
    )
    /// A viewer's format with other payload types.
    static let viewerVP8 = FormatMapping(
        format: MediaFormat(codec: .vp8),
        payloadType: 120,
        rtxPayloadType: 124,
        feedback: [.nack, .pictureLoss, .transportWide]
    )

    static var extensions: ExtensionMap {
        var map = ExtensionMap()
        map[.mid] = 4
        map[.rid] = 10
        map[.repairedRID] = 11
        map[.audioLevel] = 1
        map[.absoluteSendTime] = 2
        map[.transportSequenceNumber] = 3
        return map
    }

    static var viewerExtensions: ExtensionMap {
        var map = ExtensionMap()
        map[.mid] = 9
        map[.absoluteSendTime] = 5
        map[.transportSequenceNumber] = 7
        map[.audioLevel] = 6
        return map
    }

    static func audio(_ index: UInt32, ssrc: UInt32? = 0x1111) -> PublicationConfiguration {
        PublicationConfiguration(
            id: PublicationID(index: index, generation: 1),
            mid: "0",
            kind: .audio,
            formats: [opus],
            extensions: extensions,
            encodings: [EncodingConfiguration(ssrc: ssrc.map(SSRC.init(rawValue:)))]
        )
    }

    static func video(
        _ index: UInt32,
        rids: [String?] = [nil],
        ssrc: UInt32? = nil
    ) -> PublicationConfiguration {
        PublicationConfiguration(
            id: PublicationID(index: index, generation: 1),
            mid: "1",
            kind: .video,
            formats: [vp8],
            extensions: extensions,
            encodings: rids.map {
                EncodingConfiguration(rid: $0, ssrc: ssrc.map(SSRC.init(rawValue:)))
            }
        )
    }

    static func slot(
        _ index: UInt32,
        kind: MediaKind = .video,
        ssrc: UInt32 = 0xaaaa,
        formats: [FormatMapping]? = nil
    ) -> SlotConfiguration {
        SlotConfiguration(
            id: SlotID(index: index, generation: 1),
            mid: "v\(index)",
            kind: kind,
            ssrc: SSRC(rawValue: ssrc),
            rtxSSRC: kind == .video ? SSRC(rawValue: ssrc + 1) : nil,
            formats: formats ?? [kind == .video ? viewerVP8 : opus],
            extensions: viewerExtensions
        )
    }

    /// Makes an RTP packet with one-byte header extensions.
    static func packet(
        payloadType: UInt8,
        sequence: UInt16,
        timestamp: UInt32,
        ssrc: UInt32,
        marker: Bool = false,
        elements: [(id: UInt8, data: [UInt8])] = [],
        payload: [UInt8]
    ) -> [UInt8] {
        var bytes: [UInt8] = [elements.isEmpty ? 0x80 : 0x90, payloadType | (marker ? 0x80 : 0)]
        bytes += sequence.bytes + timestamp.bytes + ssrc.bytes
        if !elements.isEmpty {
            var block: [UInt8] = []
            for (id, data) in elements { block += [id << 4 | UInt8(data.count - 1)] + data }
            while block.count % 4 != 0 { block.append(0) }
            bytes += [0xbe, 0xde] + UInt16(block.count / 4).bytes + block
        }
        return bytes + payload
    }

    /// Makes a VP8 payload: a long picture id, TL0PICIDX, and a keyframe's or delta frame's start.
    static func vp8Payload(
        pictureID: UInt16,
        tl0: UInt8 = 0,
        isKeyframe: Bool,
        startsFrame: Bool = true,
        width: UInt16 = 640,
        height: UInt16 = 360,
        size: Int = 200
    ) -> [UInt8] {
        let descriptor: [UInt8] = [
            startsFrame ? 0x90 : 0x80, 0xe0, 0x80 | UInt8(pictureID >> 8), UInt8(pictureID & 0xff),
            tl0, 0x00,
        ]
        var frame: [UInt8] = []
        if startsFrame, isKeyframe {
            frame = [0x10, 0, 0, 0x9d, 0x01, 0x2a]
            frame += [UInt8(width & 0xff), UInt8(width >> 8)]
            frame += [UInt8(height & 0xff), UInt8(height >> 8)]
        } else if startsFrame {
            frame = [0x11, 0, 0]
        }
        let rest = (0..<max(0, size - frame.count)).map { UInt8(truncatingIfNeeded: $0) }
        return descriptor + frame + rest
    }
}

extension FixedWidthInteger {
    /// Big-endian bytes.
    var bytes: [UInt8] {
        (0..<Self.bitWidth / 8).reversed().map { UInt8(truncatingIfNeeded: self >> ($0 * 8)) }
    }
}
