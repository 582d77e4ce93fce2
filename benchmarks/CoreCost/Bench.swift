import CCounting
import LoadPeer
import RTP
import SFU

/// A core with one publisher and many viewers, all connected.
struct Bench: ~Copyable {
    private var core: Core
    private var relays: RelayPort
    /// The viewers' worker, where that is another.
    private var far: Core
    private var farRelays: RelayPort
    private let isRelayed: Bool
    private var output = Batch(capacity: 256)
    private var now = Instant(nanoseconds: 1_000_000_000)
    private var publisher: LoadPeer
    private var clear: [UInt8]
    private var sequence: UInt64 = 100
    private(set) var copies = 0
    private(set) var profile = "?"
    /// Nanoseconds spent on the publisher's side, which are not the core's.
    private(set) var preparation: Int64 = 0

    /// Packets of one batch, as a busy socket hands them over.
    private static let burst = 8

    init(_ options: Options) throws {
        let identity = try DTLSIdentity()
        let context = SRTPContext(engine: options.engine)
        core = Core(limits: .default, seed: 1, identity: identity, engine: options.engine)
        far = Core(limits: .default, seed: 2, identity: identity, engine: options.engine)
        isRelayed = options.relays
        let mesh = RelayMesh(workers: 2)
        relays = mesh.port(of: 0)
        farRelays = mesh.port(of: 1)
        publisher = LoadPeer(identity: identity, context: context, path: Self.path(0), seed: 1)
        clear = Self.keyframePacket()
        Self.connect(&publisher, 0, identity, [Self.publication], [], &core, now)
        profile = publisher.profile?.name ?? "?"
        if isRelayed { mirror() }
        for index in 1...options.viewers {
            var viewer = LoadPeer(
                identity: identity,
                context: context,
                path: Self.path(index),
                seed: UInt64(index + 1)
            )
            let slot = Self.slot(index)
            let binding = Binding(
                publication: Self.publication.id,
                subscription: UInt64(index),
                open: true
            )
            if isRelayed {
                Self.connect(&viewer, index, identity, [], [slot], &far, now)
                far.apply(.bind(slot.id, binding), at: now, into: &output)
            } else {
                Self.connect(&viewer, index, identity, [], [slot], &core, now)
                core.apply(.bind(slot.id, binding), at: now, into: &output)
            }
            output.removeAll()
        }
        // The first keyframe opens all gates; the events are the control plane's.
        var sent = Batch(capacity: 64)
        forward(packets: 1, through: &sent)
        clear[26] |= 1
        while core.takeEvent() != nil {}
        while far.takeEvent() != nil {}
    }

    /// The publication under the same name in the far worker.
    private mutating func mirror() {
        let id = Self.publication.id
        let home = RelayTarget(worker: 0, publication: id)
        let mirror = Mirror(configuration: Self.publication, home: home, open: true)
        far.apply(.mirror(mirror), at: now, into: &output)
        let target = RelayTarget(worker: 1, publication: id)
        core.apply(.relay(id, to: [target]), at: now, into: &output)
    }

    /// Sends packets through, in bursts; `sent` is the publisher's side of the wire.
    mutating func forward(packets: Int, through sent: inout Batch) {
        var left = packets
        while left > 0 {
            let count = min(left, Self.burst)
            prepare(count, into: &sent)
            for index in 0..<count {
                core.receive(sent[index], on: Self.path(0), at: now, into: &output)
            }
            core.relay(into: &relays, at: now)
            Self.flush(&core, through: &output, at: now, counting: &copies)
            if relays.publish(to: 1) {
                _ = far.receive(from: &farRelays, at: now)
                far.relay(into: &farRelays, at: now)
                Self.flush(&far, through: &output, at: now, counting: &copies)
            }
            left -= count
            now = now.advanced(nanoseconds: 8_000_000)
        }
    }

    private static func flush(
        _ core: inout Core,
        through output: inout Batch,
        at now: Instant,
        counting copies: inout Int
    ) {
        var more = true
        while more {
            more = core.flush(into: &output, at: now)
            copies += output.count
            output.removeAll()
        }
    }

    private mutating func prepare(_ count: Int, into sent: inout Batch) {
        // Only the core is looked at.
        counting_pause()
        defer { counting_resume() }
        let start = ContinuousClock.now
        sent.removeAll()
        for _ in 0..<count {
            sequence += 1
            clear[2] = UInt8(truncatingIfNeeded: sequence >> 8)
            clear[3] = UInt8(truncatingIfNeeded: sequence)
            let packet = clear
            publisher.sendRTP(packet.span, index: sequence, into: &sent)
        }
        let passed = start.duration(to: .now).components
        preparation += passed.seconds * 1_000_000_000 + passed.attoseconds / 1_000_000_000
    }

    private static func connect(
        _ peer: inout LoadPeer,
        _ index: Int,
        _ identity: DTLSIdentity,
        _ publications: [PublicationConfiguration],
        _ slots: [SlotConfiguration],
        _ core: inout Core,
        _ now: Instant
    ) {
        let ice = ICECredentials(
            localFragment: "core\(index)",
            localPassword: "corepassword0123456789-\(index)",
            remoteFragment: peer.localFragment,
            remotePassword: peer.localPassword
        )
        let configuration = TransportConfiguration(
            ice: ice,
            dtlsRole: .server,
            fingerprints: [identity.fingerprint],
            reducedSizeRTCP: true,
            cname: "sfud",
            publications: publications,
            slots: slots
        )
        let id = TransportID(index: UInt32(index), generation: 1)
        var output = Batch(capacity: 64)
        core.apply(.configure(id, configuration), at: now, into: &output)
        var queue = Batch(capacity: 64)
        peer.connect(
            fragment: ice.localFragment,
            password: ice.localPassword,
            fingerprint: identity.fingerprint,
            at: now,
            into: &queue
        )
        while queue.count > 0 {
            for position in 0..<queue.count {
                core.receive(queue[position], on: peer.path, at: now, into: &output)
            }
            queue.removeAll()
            for position in 0..<output.count {
                _ = peer.receive(output[position], at: now, into: &queue)
            }
            output.removeAll()
        }
    }

    private static func path(_ index: Int) -> Path {
        Path(remote: Address(ipv4: 0x0a00_0000 + UInt32(index), port: 4_000), local: 0)
    }

    private static let vp8 = FormatMapping(
        format: MediaFormat(codec: .vp8),
        payloadType: 96,
        rtxPayloadType: 97,
        feedback: [.nack, .pictureLoss, .transportWide]
    )

    private static var publication: PublicationConfiguration {
        var extensions = ExtensionMap()
        extensions[.transportSequenceNumber] = 3
        return PublicationConfiguration(
            id: PublicationID(index: 0, generation: 1),
            mid: "0",
            kind: .video,
            formats: [vp8],
            extensions: extensions,
            encodings: [EncodingConfiguration(ssrc: SSRC(rawValue: 0x2222))]
        )
    }

    private static func slot(_ index: Int) -> SlotConfiguration {
        var extensions = ExtensionMap()
        extensions[.mid] = 4
        extensions[.absoluteSendTime] = 2
        extensions[.transportSequenceNumber] = 3
        return SlotConfiguration(
            id: SlotID(index: UInt32(index), generation: 1),
            mid: "0",
            kind: .video,
            ssrc: SSRC(rawValue: 0x10_0000 + UInt32(index)),
            rtxSSRC: SSRC(rawValue: 0x20_0000 + UInt32(index)),
            formats: [vp8],
            extensions: extensions
        )
    }

    /// 1,200 bytes of VP8, beginning a keyframe; one bit makes it a delta frame.
    private static func keyframePacket() -> [UInt8] {
        var packet: [UInt8] = [0x90, 96, 0, 0, 0, 0, 0, 0, 0, 0, 0x22, 0x22]
        packet += [0xbe, 0xde, 0, 1, 0x31, 0, 1, 0]
        packet += [0x90, 0xe0, 0x81, 0x23, 7, 0, 0x10, 0, 0, 0x9d, 0x01, 0x2a, 0x80, 2, 0x68, 1]
        packet += Array(repeating: 0x5a, count: 1_200 - packet.count)
        return packet
    }
}
